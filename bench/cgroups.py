"""Reading 200 control groups with 20 devices each, in a fake tree of cgroup v2 on tmpfs.

Times are CPU of the thread that reads. The floor is that of bare pread(2) calls on the same files, kept open. Files on
tmpfs show the cost of reading and parsing. `python -m bench.cgroups --devices /dev/loop0 ...` makes as many groups in
the kernel's own hierarchy and reads these devices in them, for the kernel's cost of printing counters.
"""

from __future__ import annotations

import mmap
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from collectors.sampling.programs import Waits
from collectors.tables.cgroup.reader import CgroupCollector
from collectors.tables.cgroup.schema import CGROUP
from collectors.tables.cgroup.throttle import ThrottleWaits
from collectors.tables.cgroup.tree import Hierarchy, find_hierarchy, scan
from tests.fake_cgroups import FakeCgroups

SLICES, GROUPS, DEVICES = 4, 200, 20
DEPTH = 2
"""Levels of the groups below the slices."""
GOAL_MS = 2.0
TICKS = 30
_BUFFER_BYTES = 1 << 20


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
            took_ms = _tick_ms(collector, tree, busy, ticks)
            floor_ms = _floor_ms(tree.files(busy), ticks, partial(tree.work, busy))
            print(f"{words:>10} busy  {took_ms:6.2f} ms; bare preads of what is read then {floor_ms:6.2f} ms")
    finally:
        collector.close()
    for share, words in ((0.0, "none"), (0.25, "one in 4"), (1.0, "all")):
        print(f"{words:>10} held  {_held_ms(hierarchy, share, ticks):6.2f} ms for the waits of all groups and devices")
    print(f"scan of groups and limits     {_cpu_ms(lambda: scan(hierarchy)):6.2f} ms")


def _measure_devices(devices: Sequence[str], ticks: int) -> None:
    """Do the same in the kernel's own hierarchy, with a read of every group on every device before each tick."""
    hierarchy = find_hierarchy("/sys")
    assert hierarchy is not None, "no control groups that account I/O"
    real = _RealGroups(Path(hierarchy.root), devices, unified=hierarchy.v2)
    collector: CgroupCollector | None = None
    try:
        real.work()
        collector = CgroupCollector(hierarchy, lambda: None)
        rows = len(collector.read().tables["cgroup"].rows)
        took_ms = []
        for _ in range(ticks):
            real.work()
            took_ms.append(_cpu_ms(collector.read))
        folders = [Path(group.folder) for group in scan(hierarchy).groups]
        counters = [file for folder in folders for name in hierarchy.counters if (file := folder / name).exists()]
        pressures = [file for folder in folders if (file := folder / "io.pressure").exists()] if hierarchy.v2 else []
        floors_ms = [_floor_ms(files, ticks, real.work) for files in (counters, pressures)]
    finally:
        if collector is not None:
            collector.close()
        real.close()
    print(
        f"kernel's own groups, {rows} rows, all busy {statistics.median(took_ms):6.2f} ms; "
        f"bare preads of all counters {floors_ms[0]:6.2f} ms, of all pressures {floors_ms[1]:6.2f} ms"
    )


class _RealGroups:
    """Groups in which this process reads devices, one after the other; needs root."""

    def __init__(self, root: Path, devices: Sequence[str], *, unified: bool) -> None:
        self._root, self._top = root, root / f"lunscope-bench-{os.getpid()}"
        self._groups = [self._top / f"group-{number}" for number in range(GROUPS)]
        self._files = [os.open(device, os.O_RDONLY | os.O_DIRECT) for device in devices]
        self._buffer = mmap.mmap(-1, mmap.PAGESIZE)
        self._top.mkdir()
        if unified:
            (self._top / "cgroup.subtree_control").write_text("+io")
        for group in self._groups:
            group.mkdir()
        for device in () if unified else devices:
            number = Path(device).stat().st_rdev
            # Linux 6.10 and later count only on devices with a limit.
            limit = f"{os.major(number)}:{os.minor(number)} {1 << 40}"
            for group in self._groups:
                (group / "blkio.throttle.read_bps_device").write_text(limit)

    def work(self) -> None:
        """Read a page of each device in each group."""
        process = str(os.getpid())
        for group in self._groups:
            (group / "cgroup.procs").write_text(process)
            for file in self._files:
                os.preadv(file, [self._buffer], 0)
        (self._root / "cgroup.procs").write_text(process)

    def close(self) -> None:
        """Remove the groups."""
        (self._root / "cgroup.procs").write_text(str(os.getpid()))
        for group in (*self._groups, self._top):
            group.rmdir()
        for file in self._files:
            os.close(file)


class _Tree:
    """Slices with groups in them; ancestors come before their descendants."""

    def __init__(self, folder: Path) -> None:
        self._groups = FakeCgroups(folder)
        self._root = self._groups.root
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

    def files(self, busy: Sequence[str]) -> list[Path]:
        """List what must be read to see all of it: the busy groups and those below any of them."""
        read = [path for path in self.paths if path == "/" or str(Path(path).parent) in busy]
        return [self._root / path.lstrip("/") / name for path in read for name in ("io.stat", "io.pressure")]


def _floor_ms(files: Sequence[Path], ticks: int, before: Callable[[], None]) -> float:
    """Time bare reads of files that stay open; `before` writes them anew, as for a tick."""
    descriptors, buffer = [os.open(file, os.O_RDONLY) for file in files], bytearray(_BUFFER_BYTES)
    times = []
    try:
        for _ in range(ticks):
            before()
            times.append(_cpu_ms(lambda: _read_all(descriptors, buffer)))
        return statistics.median(times)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _read_all(descriptors: Sequence[int], buffer: bytearray) -> None:
    buffers = [buffer]
    for descriptor in descriptors:
        os.preadv(descriptor, buffers, 0)


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
    if sys.argv[1:2] == ["--devices"]:
        _measure_devices(sys.argv[2:], TICKS)
    else:
        main(quick="--quick" in sys.argv)
