"""Scanning the device graph of 600 LUNs with 32 paths each in a fake tree on tmpfs, and deriving paths and ports."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from collectors.block import BlockCollector
from collectors.model import Sample, Table, Topology
from collectors.rates import derive
from collectors.topology.scanner import TopologyScanner
from collectors.topology.states import changed_paths
from tests.fake_kernel import FakeKernel
from tests.fake_storage import FakeScsi

HOSTS, TARGETS, LUNS = 8, 4, 600
PAIRS = 5
COLD_GOAL_S, CHANGE_GOAL_S = 2.0, 0.3


def main(*, quick: bool = False) -> None:
    folder = Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        kernel = FakeKernel(folder)
        FakeScsi(kernel, HOSTS, TARGETS, LUNS).build()
        measure(kernel, 2 if quick else PAIRS)
    finally:
        shutil.rmtree(folder)


def measure(kernel: FakeKernel, pairs: int) -> None:
    table = BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"]
    parts = ("cold", "change", "look", "plain", "rolled_up")
    found: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(pairs):
        scanner = TopologyScanner(str(kernel.procfs), str(kernel.sysfs))
        found["cold"].append(seconds(partial(scanner.scan, table.rows)))
        found["change"].append(seconds(partial(scanner.scan, table.rows, frozenset({"sdab"}))))
        devices, graph = scanner.scan(table.rows, frozenset())
        found["look"].append(seconds(partial(changed_paths, str(kernel.sysfs), graph)))
        for name, topology in (("plain", Topology(devices)), ("rolled_up", Topology(devices, graph=graph))):
            steps = samples(table, topology)
            derive(*steps)
            found[name].append(seconds(partial(derive, *steps)))
    cold, change, look, plain, rolled_up = (statistics.median(found[name]) for name in parts)
    print(f"{len(table.rows):,} devices: whole scan {cold:.2f} s (goal {COLD_GOAL_S:g} s)")
    print(f"  after a change of one {change:.3f} s (goal {CHANGE_GOAL_S:g} s)")
    print(f"  states of all paths {look:.3f} s")
    print(f"  all active: disks alone {plain * 1e3:.1f} ms, with paths, LUNs and ports {rolled_up * 1e3:.1f} ms")


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def samples(table: Table, topology: Topology) -> tuple[Sample, Sample]:
    """One second in which every device did something."""
    random = np.random.default_rng(1)
    before = table.values.copy()
    after = before.copy()
    after[:, :11] += random.integers(1, 900, (len(after), 11)).astype(np.uint64)
    after[:, 8] = 0
    first = Sample(1, 10**9, topology, {"disk": replace(table, values=before)})
    return first, Sample(2, 2 * 10**9, topology, {"disk": replace(table, values=after)})
