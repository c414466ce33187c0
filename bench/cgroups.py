"""Reading 200 control groups with 20 devices each, in a fake tree of cgroup v2 on tmpfs.

Times are CPU of the thread that reads. Files on tmpfs cost what opening, reading and parsing do in the process; the
kernel's own part of printing counters comes on top.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from collectors.tables.cgroup.reader import CgroupCollector
from collectors.tables.cgroup.tree import find_hierarchy, scan
from tests.fake_cgroups import FakeCgroups

SLICES, GROUPS, DEVICES = 4, 200, 20
GOAL_MS = 2.0
TICKS = 30


def main(*, quick: bool = False) -> None:
    """Measure ticks by how many groups do I/O, and a look for new groups."""
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
    print(f"a scan for groups and limits  {_cpu_ms(lambda: scan(hierarchy)):6.2f} ms")


class _Tree:
    """Slices with groups in them; ancestors stand before their descendants."""

    def __init__(self, folder: Path) -> None:
        self._groups = FakeCgroups(folder)
        self._count = 0
        slices = [f"/s{number}.slice" for number in range(SLICES)]
        leaves = [f"/s{number % SLICES}.slice/group-{number // SLICES}.service" for number in range(GROUPS)]
        self.paths = ("/", *slices, *leaves)
        self.work(self.paths)

    def work(self, paths: Sequence[str]) -> None:
        """Have groups do I/O on every device."""
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


def _cpu_ms(work: Callable[[], object]) -> float:
    before = time.thread_time()
    work()
    return (time.thread_time() - before) * 1e3


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
