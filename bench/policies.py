"""Cost of choosing a path, and queue depth of 64 targets.

Two loop devices over one file in memory are the paths of a LUN. Every round runs one node alone (the control), then
every policy over both, in a new order; the figures are medians of the rounds. The nanoseconds are measured by the
engine on a sample of I/Os, including the timing itself (two reads of the clock and more).
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from bench.targets import loop, scratch
from engine._native import LoadEngine, LoadPath, LoadTarget
from engine.backend.protocol import LoadSettings
from engine.job.spec import Knobs, PathPolicy

QUEUE_DEPTH = 32
ROUNDS = 5
RUN_S = 0.6
SIZE_BYTES = 1 << 28
TARGETS = 64
IMBALANCE_GOAL = 1.0
"""Largest deviation of the mean outstanding I/Os of a target from its queue depth."""


def main(*, quick: bool = False) -> None:
    if os.geteuid() != 0:
        print("paths: left out, needs root")
        return
    with ExitStack() as stack:
        backing = stack.enter_context(scratch(Path("/dev/shm")))
        nodes = [stack.enter_context(loop(backing)) for _ in range(2)]
        report_policies(nodes, 2 if quick else ROUNDS)
        report_balance()


def report_policies(nodes: list[str], rounds: int) -> None:
    contenders: list[PathPolicy | None] = [None, *PathPolicy]
    done: dict[PathPolicy | None, list[tuple[float, float, float | None]]] = {one: [] for one in contenders}
    for number in range(rounds):
        for contender in random.Random(number).sample(contenders, len(contenders)):
            done[contender].append(run(nodes if contender else nodes[:1], contender or PathPolicy.ROUND_ROBIN))
    alone = statistics.median(cpu_us for _, cpu_us, _ in done[None])
    for policy, turns in done.items():
        iops = statistics.median(turn[0] for turn in turns)
        cpu_us = statistics.median(turn[1] for turn in turns)
        costs = [cost for *_, cost in turns if cost is not None]
        cost = f"{statistics.median(costs):5.0f} ns per choice" if costs else "no choice"
        name = "one node" if policy is None else policy.value
        print(
            f"{name:24} {iops / 1e3:6.0f}k IOPS  {cpu_us:.2f} us of CPU per I/O ({cpu_us / alone:.2f}x)  {cost}",
            flush=True,
        )


def run(nodes: list[str], policy: PathPolicy) -> tuple[float, float, float | None]:
    """IOPS, CPU microseconds per I/O and nanoseconds per choice of one run."""
    fds = [os.open(node, os.O_RDONLY | os.O_DIRECT) for node in nodes]
    try:
        paths = [LoadPath(fd, node) for fd, node in zip(fds, nodes, strict=True)]
        target = LoadTarget(fds[0], "LUN", SIZE_BYTES, 4096, writable=False, paths=paths if len(paths) > 1 else None)
    finally:
        for fd in fds:
            os.close(fd)
    engine = LoadEngine(
        [target], Knobs(queue_depth=QUEUE_DEPTH, policy=policy), LoadSettings(backend="uring", runtime_s=RUN_S)
    )
    return figures(engine)


def figures(engine: LoadEngine) -> tuple[float, float, float | None]:
    engine.start()
    while engine.running:
        time.sleep(0.02)
    assert engine.stop()
    (epoch,) = engine.epochs()
    assert epoch.start_ns is not None
    assert epoch.end_ns is not None
    ios = int(epoch.counts[:, :, 0].sum())
    iops = ios / (epoch.end_ns - epoch.start_ns) * 1e9
    return iops, engine.cpu_ns() / (ios + epoch.transient_ios) / 1e3, epoch.policy_ns


def report_balance() -> None:
    """Mean outstanding I/Os per target, by Little's law over the run."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, ExitStack() as stack:
        targets = []
        for number in range(TARGETS):
            path = Path(folder, str(number))
            path.write_bytes(os.urandom(1 << 20))
            fd = os.open(path, os.O_RDONLY)
            stack.callback(os.close, fd)
            targets.append(LoadTarget(fd, str(number), 1 << 20, 4096, writable=False))
        knobs = Knobs(queue_depth=QUEUE_DEPTH, stripe_width=TARGETS)
        engine = LoadEngine(targets, knobs, LoadSettings(backend="uring", runtime_s=3.0))
        iops, *_ = figures(engine)
        (epoch,) = engine.epochs()
        measured_ns = (epoch.end_ns or 0) - (epoch.start_ns or 0)
        outstanding = epoch.counts[:, 0, 2] / measured_ns
        off = float(np.abs(outstanding - QUEUE_DEPTH).max())
        print(
            f"{TARGETS} targets x QD {QUEUE_DEPTH}: {iops / 1e3:.0f}k IOPS, outstanding {outstanding.min():.2f} to "
            f"{outstanding.max():.2f} per target, at most {off:.2f} off (goal: <= {IMBALANCE_GOAL:g})",
            flush=True,
        )
