"""I/Os and bytes of the disks below an array, and I/Os that a disk cuts, on stock kernels with md and dm."""

from __future__ import annotations

import json
import re
import statistics

import pytest

from tests import needs
from tests.lab.guest import KERNELS, run_in_guest

pytestmark = needs.guest

CHECK = """
echo 10000 > /sys/block/md1/md/sync_speed_max
python3 -m tui report -M --json 1 12 > /tmp/said &
until [ -s /tmp/said ]; do sleep 0.2; done
echo check > /sys/block/md1/md/sync_action
sleep 4
cat /proc/mdstat
wait
cat /tmp/said
"""

SCRIPT = """
disk=$(ls /sys/block/md1/slaves | head -1)
echo 64 > /sys/block/$disk/queue/max_sectors_kb
sh -c "while [ ! -e /tmp/enough ]; do dd if=/dev/zero of=/dev/md1 bs=256k count=100 oflag=direct 2>/dev/null; done" &
python3 -m tui report -d --tier exact --json 4 3
touch /tmp/enough
wait
echo disk $disk
python3 -m tests.lab.count_cuts /dev/$disk
"""


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_mirror_writes_twice_and_a_member_with_a_smaller_limit_cuts(kernel: str) -> None:
    lines = run_in_guest("stack", SCRIPT, "--kernel", kernel).splitlines()
    rows = {row["name"]: row for row in json.loads([line for line in lines if line.startswith("{")][-1])["disks"]}
    (disk,) = (line.split()[1] for line in lines if line.startswith("disk "))
    array, member = rows["md1"], rows[disk]
    # udev reads what was written whenever it is closed: from one member.
    read, written = array["read_bytes_per_s"], array["write_bytes_per_s"]
    assert array["bytes_below_ratio"] == pytest.approx((read + 2 * written) / (read + written), rel=0.02)
    assert array["parts_per_io"] is None
    # The other member takes 256 KiB as they come; here each is cut in four.
    assert member["writes_per_s"] == pytest.approx(4 * array["writes_per_s"], rel=0.02)
    # Of 1 MiB sixteen requests of 64 KiB, which are fifteen cuts.
    (cuts,) = (line.split()[1:] for line in lines if line.startswith("cuts "))
    assert cuts == [str(50 * 15), str(50 * 15), str(50 * 16)]
    assert member["whole_per_s"] == pytest.approx(array["writes_per_s"] + member["reads_per_s"], rel=0.05)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_check_is_as_far_as_the_kernel_says(kernel: str) -> None:
    lines = run_in_guest("stack", CHECK, "--kernel", kernel).splitlines()
    told = [found for line in lines if (found := re.search(r"check = *([0-9.]+)%.*speed=([0-9]+)K/sec", line))]
    rows = [row for line in lines if line.startswith("{") for row in json.loads(line)["background"]]
    # The thin pool of the topology is there, too: how full it is.
    assert {row["name"].split()[1] for row in rows} == {"check", "fill"}
    rows = [row for row in rows if row["name"] == "md1 check"]
    done = [row["done_pct"] for row in rows]
    # Between two readings, a second apart, the kernel was as far as it said.
    assert min(done) - 0.5 <= float(told[0][1]) <= max(done) + 0.5
    speeds = [row["bytes_per_s"] for row in rows if row["bytes_per_s"]]
    assert statistics.median(speeds) == pytest.approx(10_000 * 1024, rel=0.2)
    assert all(row["share_pct"] is None or row["share_pct"] > 90 for row in rows)
