"""The ceiling of the engine: rings of no-ops, one thread, with the full cost of offsets, timing and counting."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

from engine._native import LoadEngine, LoadTarget
from engine.backend.protocol import LoadSettings
from engine.job.spec import Knobs

DEPTHS = (1, 8, 32, 128, 512)
SIZE_BYTES = 1 << 30
RUN_S = 1.0
GOAL_M = 7.0


def main(*, quick: bool = False) -> None:
    """Print no-ops per second of CPU time, by depth, and the memory a wide and deep load takes."""
    with tempfile.TemporaryFile() as file:
        file.truncate(SIZE_BYTES)
        # First, before memory of other loads can be reused.
        print(f"64 targets x QD 32: {memory_mib(file.fileno()):.1f} MiB beyond buffers   goal: <= 64", flush=True)
        for depth in DEPTHS:
            rates = [ceiling_m(file.fileno(), depth) for _ in range(3 if quick else 7)]
            goal = f"   goal at depth: >= {GOAL_M:.0f}" if depth >= 128 else ""
            print(f"QD {depth}: {statistics.median(rates):.2f} M/s per core, best {max(rates):.2f}{goal}", flush=True)


def ceiling_m(fd: int, depth: int) -> float:
    """Millions of no-ops per second of the thread's CPU time, which other load on the machine does not change."""
    engine = dry(fd, targets=1, depth=depth)
    engine.start()
    while engine.running:
        time.sleep(0.05)
    assert engine.stop()
    return float(engine.counters()[:, 0].sum()) / engine.cpu_ns() * 1e3


def memory_mib(fd: int) -> float:
    """Memory that a load on 64 targets adds to the process while it runs, without the buffers of its I/Os."""
    before = resident_bytes()
    engine = dry(fd, targets=64, depth=32)
    engine.start()
    time.sleep(RUN_S / 2)
    assert engine.running
    grown = resident_bytes() - before
    assert engine.stop()
    return (grown - 64 * 32 * 4096) / (1 << 20)


def dry(fd: int, *, targets: int, depth: int) -> LoadEngine:
    opened = [LoadTarget(fd, f"target {number}", SIZE_BYTES, 4096, writable=False) for number in range(targets)]
    knobs = Knobs(queue_depth=depth, stripe_width=targets)
    return LoadEngine(opened, knobs, LoadSettings(backend="uring", runtime_s=RUN_S, dry=True))


def resident_bytes() -> int:
    """Pages of this process in memory; field 2 of proc_pid_statm(5)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
