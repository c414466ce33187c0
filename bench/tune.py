"""A change of queue_depth on 600 LUNs with 32 paths each in a fake tree on tmpfs: made, restored, and one that fails.

From reading the tree to the last comparison; from the refusal of the last path to the last value restored. CPU is of
both processes, of lunscope and of the one that restores.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.topology import HOSTS, LUNS, TARGETS
from engine.errors import LunscopeError
from engine.tune.change import TunableChange, make_change
from engine.tune.journal import Journal
from engine.tune.planned_writes import make_plan, parse_settings
from engine.tune.scope import Host
from engine.tune.tree import KernelTree
from tests.fake_kernel import FakeKernel
from tests.fake_storage import FakeScsi

DEPTH = "17"
SCOPE = "type:scsi"
PAIRS = 5
GOAL_S = 2.0


@dataclass(frozen=True, slots=True)
class Moment:
    """A time, with the CPU used up to then."""

    wall_s: float
    cpu_s: float

    @classmethod
    def now(cls) -> Moment:
        """Take the present one, with the CPU of processes that were waited for."""
        return cls(time.perf_counter(), sum(os.times()[:4]))

    def since(self, before: Moment) -> tuple[float, float]:
        """Wall time and CPU since another one."""
        return self.wall_s - before.wall_s, self.cpu_s - before.cpu_s


class FailingTree(KernelTree):
    """Refuses the last of so many writes."""

    def __init__(self, root: Path, last: int) -> None:
        super().__init__(root)
        self._left = last
        self.refused_at = Moment.now()

    def write(self, path: str, text: str) -> None:
        """Write a value, but for the last one."""
        self._left -= 1
        if not self._left:
            self.refused_at = Moment.now()
            raise LunscopeError(f"{path}: Input/output error")
        super().write(path, text)


def main(*, quick: bool = False) -> None:
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        kernel = FakeKernel(folder)
        FakeScsi(kernel, HOSTS, TARGETS, LUNS).build()
        measure(kernel.sysfs, Journal(folder / "state"), 1 if quick else PAIRS)
    finally:
        shutil.rmtree(folder)


def measure(sysfs: Path, journal: Journal, pairs: int) -> None:
    before = depths(sysfs)
    found: dict[str, list[tuple[float, float]]] = {"changed and compared": [], "restored": [], "rolled back": []}
    for _ in range(pairs):
        with KernelTree(sysfs) as tree:
            begun = Moment.now()
            change = changed(tree, journal)
            found["changed and compared"].append(Moment.now().since(begun))
            assert set(depths(sysfs).values()) == {DEPTH}
            begun = Moment.now()
            change.end()
            found["restored"].append(Moment.now().since(begun))
        assert depths(sysfs) == before
        with FailingTree(sysfs, len(before)) as tree:
            refused(tree, journal)
            found["rolled back"].append(Moment.now().since(tree.refused_at))
        assert depths(sysfs) == before
    print(f"{len(before):,} paths, goal {GOAL_S:g} s each:")
    for what, times in found.items():
        wall_s, cpu_s = (statistics.median(part) for part in zip(*times, strict=True))
        after = " after the last path refused" if what == "rolled back" else ""
        print(f"  {what}{after} in {wall_s:.2f} s, {cpu_s:.2f} s of CPU")


def changed(tree: KernelTree, journal: Journal) -> TunableChange:
    host, given = Host(tree), parse_settings([f"queue_depth={DEPTH}"])
    return make_change(tree, make_plan(host, given, host.select([SCOPE])), given, journal=journal)


def refused(tree: KernelTree, journal: Journal) -> None:
    try:
        changed(tree, journal)
    except LunscopeError as error:
        if "all values are as before" in str(error):
            return
        raise
    raise AssertionError("the last write did not fail")


def depths(sysfs: Path) -> dict[str, str]:
    return {str(path): path.read_text().strip() for path in sysfs.glob("block/*/device/queue_depth")}
