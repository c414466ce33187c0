"""Reading 200 control groups with 20 devices each, in a fake tree of cgroup v2 on tmpfs.

Times are CPU of the thread that reads. Files on tmpfs show the cost of opening, reading and parsing; the
kernel's cost of printing counters comes on top.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from collectors.tables.cgroup.reader import CgroupCollector
from collectors.tables.cgroup.schema import CGROUP
from collectors.tables.cgroup.throttle import ThrottleWaits, Waits
from collectors.tables.cgroup.tree import Hierarchy, find_hierarchy, scan
from tests.fake_cgroups import FakeCgroups

SLICES, GROUPS, DEVICES = 4, 200, 20
DEPTH = 2
"""Of the groups, below the slices."""
GOAL_MS = 2.0
TICKS = 30


def main(*, quick: bool = False) -> None:
    """Measure ticks by the number of active groups, and a scan for new groups."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        _measure(folder, 10 if quick else TICKS)
    finally:
        shutil.rmtree(folder)


def _measure(folder: Path, ticks: int) -> None:
    tree = _Tree(folder)
    hierarchy = find_hierarchy(str(folder))
    assert hierarchy is not None
    collector = CgroupCollector(hierarchy, lambda: None)
    try:
        rows = len(collector.read().tables["cgroup"].rows)
        print(f"{SLICES + GROUPS + 1} groups, {rows} rows; goal {GOAL_MS:g} ms a tick")
        for share, words in ((0.0, "none"), (0.025, "one in 40"), (0.25, "one in 4"), (1.0, "all")):
            busy = tree.paths[: round(share * len(tree.paths))]
            print(f"{words:>10} busy  {_tick_ms(collector, tree, busy, ticks):6.2f} ms")
    finally:
        collector.close()
    for share, words in ((0.0, "none"), (0.25, "one in 4"), (1.0, "all")):
        print(f"{words:>10} held  {_held_ms(hierarchy, share, ticks):6.2f} ms for the waits of all groups and devices")
    print(f"scan of groups and limits     {_cpu_ms(lambda: scan(hierarchy)):6.2f} ms")


class _Tree:
    """Slices with groups in them; ancestors come before their descendants."""

    def __init__(self, folder: Path) -> None:
        self._groups = FakeCgroups(folder)
        self._count = 0
        slices = [f"/s{number}.slice" for number in range(SLICES)]
        leaves = [f"/s{number % SLICES}.slice/group-{number // SLICES}.service" for number in range(GROUPS)]
        self.paths = ("/", *slices, *leaves)
        self.work(self.paths)

    def work(self, paths: Sequence[str]) -> None:
        """Add I/O of groups on every device."""
        self._count += 1
        counts = (123_456_789_012 + self._count, 9_876_543_210, 12_345_678 + self._count, 9_876_543)
        for path in paths:
            limits = "8:16 rbps=max wbps=1048576 riops=max wiops=120\n"
            devices = {f"8:{16 * number}": counts for number in range(DEVICES)}
            self._groups.put(path, devices, stalled_us=(self._count, 0), limits=limits)


def _tick_ms(collector: CgroupCollector, tree: _Tree, busy: Sequence[str], ticks: int) -> float:
    times = []
    for _ in range(ticks):
        tree.work(busy)
        times.append(_cpu_ms(collector.read))
    return statistics.median(times)


class _HeldProgram:
    """Waits of every group on every device, of which a share has new ones at each reading."""

    def __init__(self, numbers: Sequence[int], share: float) -> None:
        places = [(number, 8, 16 * device) for number in numbers for device in range(DEVICES)]
        self._rows = np.array([(*place, 1_000, 10**9) for place in places], np.uint64)
        rows = np.arange(round(share * len(places)))
        self._cells = np.stack([np.repeat(rows, 3), np.tile([90, 91, 92], len(rows)), np.ones(3 * len(rows))], axis=1)

    def read(self) -> Waits:
        return self._rows, self._cells.astype(np.uint64)

    def losses(self) -> tuple[int, int]:
        return 0, 0

    def close(self) -> None:
        pass


def _held_ms(hierarchy: Hierarchy, share: float, ticks: int) -> float:
    numbers = [group.number for group in scan(hierarchy).groups if group.path.count("/") == DEPTH]
    waits = ThrottleWaits(lambda: _HeldProgram(numbers, share), adds_up=True)
    collector = CgroupCollector(hierarchy, lambda: None, waits)
    try:
        while CGROUP.name not in collector.read().histograms:
            time.sleep(0.01)
        with_waits = statistics.median(_cpu_ms(collector.read) for _ in range(ticks))
    finally:
        collector.close()
    return with_waits


def _cpu_ms(work: Callable[[], object]) -> float:
    before = time.thread_time()
    work()
    return (time.thread_time() - before) * 1e3


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
