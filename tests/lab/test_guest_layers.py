"""I/Os and bytes of the disks below an array, and I/Os that a disk cuts, on stock kernels with md and dm."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from tests import needs
from tests.lab.guest import KERNELS, run_in_guest

pytestmark = needs.guest

CHECK = """
export LUNSCOPE_STATE_DIR=/tmp/state
modprobe dm_raid
python3 -m tui tune set sync_speed_max=10000 --on md1 --keep >&2
echo "speed $(cat /sys/block/md1/md/sync_speed_max)"
disks=$(pvs --noheadings -o pv_name | grep /dev/sd)
lvcreate -qqy --type raid1 -m1 -L 100M --maxrecoveryrate 3M -n mirrored vg $disks >&2
mkfs.ext4 -q /dev/vg/linear && mkdir /tmp/m && mount /dev/vg/linear /tmp/m
python3 -m tui record -o /tmp/said.luns --duration 60 >&2 &
until [ -s /tmp/said.luns ]; do sleep 0.2; done
echo check > /sys/block/md1/md/sync_action
cat > /tmp/watch.py <<END
import re, subprocess, time
for turn in range(80):
    found = re.search(r"check = .*[(]([0-9]+)/([0-9]+)", open("/proc/mdstat").read())
    if found:
        print("md", time.time(), *found.groups(), flush=True)
    status = subprocess.run(["dmsetup", "status", "vg-mirrored"], capture_output=True, text=True).stdout.split()
    print("dm", time.time(), *status[6].split("/"), status[7], flush=True)
    time.sleep(0.5)
END
python3 /tmp/watch.py &
sleep 20
fsfreeze -f /tmp/m; sleep 20; fsfreeze -u /tmp/m
wait
echo "pool $(dmsetup status vg-pool-tpool | cut -d' ' -f6)"
python3 -m tui report -M --json --from /tmp/said.luns
python3 -m tui export /tmp/said.luns --table events --format jsonl
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


def _told(lines: list[str], word: str) -> tuple[list[float], list[float]]:
    """Moments and parts in percent that the kernel told."""
    found = [[float(number) for number in line.split()[1:4]] for line in lines if line.startswith(f"{word} ")]
    assert found, lines
    return [at for at, _, _ in found], [100.0 * done / total for _, done, total in found]


def _said(rows: list[dict[str, Any]], name: str) -> tuple[list[float], list[float]]:
    found = [(row["at"], row["done_pct"]) for row in rows if row["name"] == name and row["done_pct"] is not None]
    assert len(found) > 5, [row["name"] for row in rows]
    return [at for at, _ in found], [done for _, done in found]


@pytest.mark.parametrize("kernel", KERNELS)
def test_work_is_as_far_as_the_kernel_says(kernel: str) -> None:
    lines = run_in_guest("stack", CHECK, "--kernel", kernel).splitlines()
    documents = [json.loads(line) for line in lines if line.startswith("{")]
    rows = [
        {**row, "at": datetime.fromisoformat(document["time"]).timestamp()}
        for document in documents
        for row in document.get("background", ())
    ]
    assert "speed 10000 (local)" in lines
    array = next(row["name"] for row in rows if re.fullmatch(r"dm-\d+ (resync|recovery)", row["name"]))
    for word, name in (("md", "md1 check"), ("dm", array)):
        (told_at, told), (at, done) = _told(lines, word), _said(rows, name)
        inside = [place for place, moment in enumerate(at) if told_at[0] <= moment <= told_at[-1] and done[place] < 100]
        kernel_done = np.interp([at[place] for place in inside], told_at, told)
        moved, kernel_moved = done[inside[-1]] - done[inside[0]], kernel_done[-1] - kernel_done[0]
        assert moved == pytest.approx(kernel_moved, rel=0.02), word
    used, size = next(line for line in lines if line.startswith("pool ")).split()[1].split("/")
    fills = {row["done_pct"] for row in rows if row["name"].endswith(" fill")}
    assert fills == {pytest.approx(100 * int(used) / int(size), abs=0.01)}
    texts = [each["text"] for each in documents if "text" in each]
    (frozen,) = (float(found[1]) for text in texts if (found := re.search(r": freeze ended after ([0-9.]+) s", text)))
    assert 19.9 <= frozen <= 22
    assert "md1: check began" in texts
