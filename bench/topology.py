"""600 LUNs with 32 paths each in a fake tree on tmpfs: scanning, noticing changes, deriving and recording.

Times are CPU of the thread that does the work, so that other load affects them less; a full scan uses several
threads and is measured by wall time.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from bench.session import simulated
from collectors.kernel.device_instances import DeviceInstanceReader
from collectors.model import Sample, Table, Topology
from collectors.rates import derive
from collectors.session.writer import SessionWriter
from collectors.tables.block.counters import BlockCollector
from collectors.tables.block.error_readers import PathErrors
from collectors.tables.block.path_verdict import judge_paths
from collectors.tables.block.schema import PATH_ERRORS
from collectors.topology.scanner import TopologyScanner
from collectors.topology.state_poll import StatePoll
from engine.replacing import replace
from tests.fake_kernel import FakeKernel
from tests.fake_storage import FakeScsi

HOSTS, TARGETS, LUNS = 8, 4, 600
PAIRS = 5
COLD_GOAL_S, CHANGE_GOAL_S, DERIVE_GOAL_MS = 2.0, 0.3, 25.0


def main(*, quick: bool = False) -> None:
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        kernel = FakeKernel(folder)
        FakeScsi(kernel, HOSTS, TARGETS, LUNS).build()
        measure(kernel, 2 if quick else PAIRS)
        notice(kernel, 2 if quick else PAIRS)
    finally:
        shutil.rmtree(folder)
    record(60 if quick else 300)


def measure(kernel: FakeKernel, pairs: int) -> None:
    table = BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"]
    parts = ("cold", "change", "states", "errors", "plain", "rolled_up", "judged")
    found: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(pairs):
        scanner = TopologyScanner(str(kernel.procfs), str(kernel.sysfs))
        found["cold"].append(seconds(partial(scanner.scan, table.rows)))
        found["change"].append(seconds(partial(scanner.scan, table.rows, frozenset({"sdab"}))))
        devices, graph = scanner.scan(table.rows, frozenset())
        poll = StatePoll(str(kernel.sysfs), keep=True)
        poll.changed(graph)
        found["states"].append(seconds(partial(poll.changed, graph)))
        found["errors"].append(seconds(partial(PathErrors(str(kernel.sysfs)).take, graph)))
        for name, topology in (("plain", Topology(devices)), ("rolled_up", Topology(devices, graph=graph))):
            first, second, third = samples(table, topology)
            derive(first, second)
            found[name].append(cpu_seconds(partial(derive, second, third)))
            frame = derive(second, third)
        judge_paths(frame)
        found["judged"].append(cpu_seconds(partial(judge_paths, frame)))
    cold, change, states, errors, plain, rolled_up, judged = (statistics.median(found[name]) for name in parts)
    print(f"{len(table.rows):,} devices: whole scan {cold:.2f} s (goal {COLD_GOAL_S:g} s)")
    print(f"  after a change of one {change:.3f} s (goal {CHANGE_GOAL_S:g} s)")
    print(f"  states of all paths {states:.3f} s")
    print(f"  error counters of all paths {errors:.3f} s")
    print(
        f"  all active: disks alone {plain * 1e3:.1f} ms, with paths, LUNs and ports {rolled_up * 1e3:.1f} ms, "
        f"paths judged {judged * 1e3:.1f} ms (goal for all, with parsing: {DERIVE_GOAL_MS:g} ms)"
    )


def notice(kernel: FakeKernel, pairs: int) -> None:
    """Cost of a uevent for an unknown disk to a tick, with and without unique inode numbers."""
    found: dict[bool, list[float]] = {False: [], True: []}
    names = list(kernel.disks)
    readers = {unique: DeviceInstanceReader(str(kernel.sysfs), unique_inodes=unique) for unique in found}
    for _ in range(pairs + 1):
        for unique, reader in readers.items():
            found[unique].append(cpu_seconds(partial(reader.read, names)))
    whole, listed = (statistics.median(found[unique][1:]) for unique in (False, True))
    print(f"  identities after a uevent: all read {whole * 1e3:.0f} ms, by listing {listed * 1e3:.0f} ms")


def record(ticks: int) -> None:
    """Bytes of a tick of 19,200 paths with their error counters, all active and all idle, beyond the first."""
    for name, share, goal_kb in (("active", 1.0, 400), ("idle", 0.0, 5)):
        each_bytes = (recorded_bytes(share, ticks) - recorded_bytes(share, 1)) / (ticks - 1)
        print(f"  recording all {name}: {each_bytes / 1e3:.1f} KB a tick (goal {goal_kb} KB)")


def recorded_bytes(share: float, ticks: int) -> int:
    with tempfile.TemporaryDirectory(prefix="lunscope-bench-") as folder:
        path = Path(folder, "paths.luns")
        with SessionWriter(path) as writer:
            for sample in islice(simulated(19_200, share), ticks):
                writer.write(with_errors(sample))
        return path.stat().st_size


def with_errors(sample: Sample) -> Sample:
    rows = sample.tables["disk"].rows
    errors = Table(PATH_ERRORS, rows, np.full((len(rows), len(PATH_ERRORS.columns)), 3, np.uint64))
    return replace(sample, tables={**sample.tables, PATH_ERRORS.name: errors})


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.thread_time()
    work()
    return time.thread_time() - started


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def samples(table: Table, topology: Topology) -> tuple[Sample, Sample, Sample]:
    """Two seconds with I/O on every device."""
    random = np.random.default_rng(1)
    grown = np.zeros_like(table.values)
    grown[:, :11] = random.integers(1, 900, (len(grown), 11))
    grown[:, 8] = 0
    values = table.values.copy()
    values[:, 8] = 0
    first, second, third = (
        Sample(at_s, at_s * 10**9, topology, {"disk": replace(table, values=values + at_s * grown)})
        for at_s in range(1, 4)
    )
    return first, second, third
