"""I/Os and bytes of the disks below an array, and I/Os that a disk cuts, on stock kernels with md and dm."""

from __future__ import annotations

import json

import pytest

from tests import needs
from tests.lab.guest import KERNELS, run_in_guest

pytestmark = needs.guest

SCRIPT = """
disk=$(ls /sys/block/md1/slaves | head -1)
echo 64 > /sys/block/$disk/queue/max_sectors_kb
fio --name=w --filename=/dev/md1 --rw=randwrite --bs=256k --direct=1 --ioengine=libaio --iodepth=4 --time_based \
    --runtime=25 >/dev/null &
sleep 4
python3 -m tui report -d --tier exact --json 4 3
wait
echo disk $disk
"""


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_mirror_writes_twice_and_a_member_with_a_smaller_limit_cuts(kernel: str) -> None:
    lines = run_in_guest("stack", SCRIPT, "--kernel", kernel).splitlines()
    rows = {row["name"]: row for row in json.loads([line for line in lines if line.startswith("{")][-1])["disks"]}
    (disk,) = (line.split()[1] for line in lines if line.startswith("disk "))
    assert rows["md1"]["below_per_byte"] == pytest.approx(2.0, rel=0.05)
    assert rows["md1"]["parts_per_io"] is None
    # The other member takes 256 KiB as they come: one request there, four here.
    assert rows["md1"]["below_per_io"] == pytest.approx(5.0, rel=0.1)
    assert rows[disk]["parts_per_io"] == pytest.approx(4.0, rel=0.05)
