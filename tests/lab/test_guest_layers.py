"""I/Os and bytes of the disks below an array, and I/Os that a disk cuts, on stock kernels with md and dm."""

from __future__ import annotations

import bisect
import itertools
import json
import statistics
from typing import Any

import numpy as np
import pytest

from tests import needs

pytestmark = [needs.guest, pytest.mark.timeout(3600), pytest.mark.usefixtures("kernel")]

CHECK = """
echo 10000 > /sys/block/md1/md/sync_speed_max
python3 -m tests.lab.follow_check md1 /tmp/check.luns
python3 -m tui report -M --json --from /tmp/check.luns
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


@pytest.mark.guest("stack", SCRIPT)
def test_a_mirror_writes_twice_and_a_member_with_a_smaller_limit_cuts(printed: str) -> None:
    lines = printed.splitlines()
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


@pytest.mark.guest("stack", CHECK)
def test_a_check_is_as_far_and_as_fast_as_the_kernel_says(printed: str) -> None:
    documents: list[dict[str, Any]] = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    (followed,) = (document for document in documents if "told" in document)
    told_ns, told_bytes = zip(*followed["told"], strict=True)
    rows = [row for document in documents for row in document.get("background", ())]
    # The thin pool of the topology is there, too: how full it is.
    assert {row["name"].split()[1] for row in rows} == {"check", "fill"}
    checks = [row for row in rows if row["name"] == "md1 check"]
    # The first sample of the recording has no interval.
    assert len(followed["recorded"]) - len(checks) in {0, 1}
    read = [
        (sampled_ns, done_bytes, row)
        for (sampled_ns, done_bytes), row in zip(followed["recorded"][-len(checks) :], checks, strict=True)
        if told_ns[0] <= sampled_ns <= told_ns[-1]
    ]
    assert all(row["done_pct"] == pytest.approx(100 * done / followed["whole"], abs=0.01) for _, done, row in read)
    whole_bytes = read[-1][1] - read[0][1]
    assert len(read) > 5
    assert whole_bytes > 20 << 20
    # What was read is between what the kernel said just before and just after.
    for sampled_ns, done_bytes, _ in read:
        after = bisect.bisect_left(told_ns, sampled_ns)
        low, high = told_bytes[max(after - 1, 0)], told_bytes[min(after + 1, len(told_ns) - 1)]
        assert low - 0.02 * whole_bytes <= done_bytes <= high + 0.02 * whole_bytes
    moved = [row["bytes_per_s"] * (now - before) / 1e9 for (before, *_), (now, _, row) in itertools.pairwise(read)]
    first, last = np.interp([read[0][0], read[-1][0]], told_ns, told_bytes)
    assert sum(moved) == pytest.approx(last - first, rel=0.02)
    # Disks are read before, and the kernel does a second's part at once: of one interval the share is not exact.
    assert statistics.median(row["share_pct"] for row in checks if row["share_pct"] is not None) > 90
