"""Epochs made by hand, through the asyncio engine's own books."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.aio.next_io import PlannedIo
from engine.aio.stats import SETTLE_NS, CpuTimes, Epoch
from engine.job.spec import Knobs

SECOND_NS = 1_000_000_000
DEFAULTS = Knobs()
_NO_TIMES: CpuTimes = (0, 0, 0, 0)
CPU_NS: CpuTimes = (402_000, 1_206_000, 16_000_000_000, 100_500)
"""What every epoch costs: engine, host, and all the time its processors had."""


@dataclass(frozen=True)
class Io:
    """One I/O that completed `at_s` seconds into the measured time; a latency of None is an error."""

    target: int = 0
    direction: int = 0
    length: int = 4096
    latency_ns: int | None = 100_000
    at_s: float = 0.0


def epoch(
    ios: Iterable[Io],
    *,
    knobs: Knobs | None = None,
    targets: int = 1,
    index: int = 0,
    turned_ns: int = 0,
    duration_s: float = 2.0,
    transient: int = 0,
    settled: bool = True,
) -> Epoch:
    readings = iter([_NO_TIMES, CPU_NS])
    made = Epoch(index, knobs or Knobs(), turned_ns, targets, lambda: next(readings, CPU_NS))
    for _ in range(transient):
        made.record(PlannedIo(0, 0, 0, 4096), 1, turned_ns)
    start_ns = turned_ns + SETTLE_NS
    if settled:
        made.begin(start_ns)
    for io in ios:
        planned = PlannedIo(io.target, io.direction, 0, io.length)
        if io.latency_ns is None:
            made.record_error(planned)
        else:
            now_ns = start_ns + round(io.at_s * SECOND_NS)
            made.record(planned, io.latency_ns, now_ns)
    made.end(start_ns + round(duration_s * SECOND_NS))
    return made.snapshot()
