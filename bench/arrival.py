"""Open loops on an idle zram: accuracy of rates, and latencies from the arrival against queueing theory.

With queue depth 1 the engine and the device are one server with a queue, fed by Poisson arrivals: M/G/1. Theory is that
queue simulated (Lindley's recursion) with service times drawn from the distribution that the engine measured together
with the latencies, so only the waiting is compared: schedule, queue and clock. A thread that waits for a CPU cannot
keep a schedule: rounds in which it waited for more than `IDLE_SHARE` of the time are counted, not used, and repeated.

A CPU also stalls for microseconds: interrupts, and in a guest its host. Arrivals in such a gap wait too, which the
theory does not include. So gaps are measured by a loop that only reads the clock, just before each round, and theory is
printed with and without them.
"""

from __future__ import annotations

import os
import statistics
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from bench.targets import zram
from engine._native import LoadEngine, LoadTarget
from engine.backend.protocol import LoadSettings
from engine.job.spec import Knobs
from engine.results.histogram import Latencies, middles_ns
from engine.results.measured import BOTH, Measured, measure

RATE_IOPS = 50_000.0
SIZE_BYTES = 256 << 20
RUN_S = 0.6
ROUNDS = 9
MOST_ROUNDS = 40
Arrival = Literal["constant", "poisson"]
GAPS_NS, GAP_NS = 300_000_000, 1000
"""Time of the search for gaps, and the least step of the clock that is one: reading it takes some 100 ns."""
SIMULATED = 2_000_000
IDLE_SHARE = 0.002
P99_GOAL, RATE_GOAL = 0.05, 0.005


@dataclass(frozen=True, slots=True)
class Round:
    """Result of one run."""

    rate: float
    """Relative to the requested rate."""
    measured: Measured
    service: Latencies
    waited_share: float
    """Share of the time in which the thread was runnable without a CPU."""
    gaps_ns: tuple[int, ...]
    """Lengths of the gaps found in `GAPS_NS`."""

    @property
    def is_idle(self) -> bool:
        """Whether the machine was idle."""
        return self.waited_share <= IDLE_SHARE


def main(*, quick: bool = False) -> None:
    """Print rates and percentiles of the engine that `auto` takes for zram."""
    if os.geteuid() != 0 or not Path("/sys/class/zram-control").exists():
        print("left out: needs root and zram")
        return
    with zram(SIZE_BYTES) as device:
        for arrival in ("constant", "poisson"):
            report(arrival, tried(device, arrival, 3 if quick else ROUNDS), theory=arrival == "poisson")


def tried(device: str, arrival: Arrival, wanted: int) -> list[Round]:
    """Run rounds until enough of them found the machine idle, or the limit is reached."""
    rounds: list[Round] = []
    while len(rounds) < MOST_ROUNDS and sum(turn.is_idle for turn in rounds) < wanted:
        rounds.append(run(device, arrival, seed=1 + len(rounds)))
    return rounds


def run(device: str, arrival: Arrival, seed: int) -> Round:
    gaps_ns = processor_gaps_ns()
    fd = os.open(device, os.O_RDONLY | os.O_DIRECT)
    try:
        target = LoadTarget(fd, device, SIZE_BYTES, 4096, writable=False)
    finally:
        os.close(fd)
    knobs = Knobs(queue_depth=1, rate_iops=RATE_IOPS)
    engine = LoadEngine([target], knobs, LoadSettings(backend="threads", runtime_s=RUN_S, arrival=arrival, seed=seed))
    engine.start()
    waited_ns = 0
    while engine.running:
        time.sleep(0.05)
        waited_ns = max(waited_ns, run_delay_ns())
    assert engine.stop()
    (epoch,) = engine.epochs()
    measured = measure(epoch, None, BOTH)
    assert measured.service is not None
    assert epoch.start_ns is not None
    assert epoch.end_ns is not None
    seconds = (epoch.end_ns - epoch.start_ns) / 1e9
    return Round(measured.ios / seconds / RATE_IOPS, measured, measured.service, waited_ns / RUN_S / 1e9, gaps_ns)


def processor_gaps_ns() -> tuple[int, ...]:
    """Find steps of the clock that are too long for a loop that only reads it."""
    gaps: list[int] = []
    before = time.monotonic_ns()
    end = before + GAPS_NS
    while before < end:
        now = time.monotonic_ns()
        if now - before > GAP_NS:
            gaps.append(now - before)
        before = now
    return tuple(gaps)


def run_delay_ns() -> int:
    """Time the threads of the load have waited for a CPU; field 2 of /proc/PID/schedstat (sched-stats.rst)."""
    waited_ns = 0
    for task in Path("/proc/self/task").iterdir():
        # Threads come and go.
        with suppress(OSError):
            if (task / "comm").read_text().strip() == "load":
                waited_ns += int((task / "schedstat").read_text().split()[1])
    return waited_ns


def theory_p99_ns(service: Latencies, seed: int, gaps_ns: tuple[int, ...] = ()) -> float:
    """Simulate M/G/1: each arrival waits for the end of the previous one.

    A gap delays arrivals in it and those behind; a gap within a service time is already counted there.
    """
    random = np.random.default_rng(seed)
    shares = service.counts / service.counts.sum()
    services = random.choice(middles_ns(service.buckets), SIMULATED, p=shares)
    gaps = random.exponential(1e9 / RATE_IOPS, SIMULATED)
    if gaps_ns:
        lengths = np.array(gaps_ns, np.float64)
        idle_share = max(0.0, 1.0 - RATE_IOPS * float(services.mean()) / 1e9)
        hit = random.random(SIMULATED) < idle_share * lengths.sum() / GAPS_NS
        length = random.choice(lengths, SIMULATED, p=lengths / lengths.sum())
        services = services + np.where(hit, length * random.random(SIMULATED), 0.0)
    steps = np.concatenate(([0.0], np.cumsum(services[:-1] - gaps[1:])))
    waits = steps - np.minimum.accumulate(steps)
    return float(np.percentile(waits + services, 99))


def report(name: str, rounds: list[Round], *, theory: bool) -> None:
    idle = [turn for turn in rounds if turn.is_idle]
    if not idle:
        waited = statistics.median(turn.waited_share for turn in rounds)
        print(f"{name}: no result: the thread waited for a CPU {waited:.1%} of the time", flush=True)
        return
    rates = [turn.rate for turn in idle]
    print(
        f"{name}, {len(idle)} idle rounds of {len(rounds)}: rate {statistics.median(rates):.4f}x "
        f"[{min(rates):.4f}-{max(rates):.4f}]   goal: within {RATE_GOAL:.1%}",
        flush=True,
    )
    if theory:
        report_theory(idle)


def report_theory(rounds: list[Round]) -> None:
    expected = [theory_p99_ns(turn.service, seed) for seed, turn in enumerate(rounds)]
    with_gaps = [theory_p99_ns(turn.service, seed, turn.gaps_ns) for seed, turn in enumerate(rounds)]
    still = statistics.median(sum(turn.gaps_ns) / GAPS_NS for turn in rounds)
    found = [turn.measured.percentile_ns(99) or 0.0 for turn in rounds]
    service = statistics.median(turn.service.percentile_ns(99) or 0.0 for turn in rounds)
    ratio = statistics.median(p99 / theory for p99, theory in zip(found, expected, strict=True))
    figures = (statistics.median(found) / 1e3, statistics.median(expected) / 1e3, service / 1e3)
    print(
        "  p99 from the arrival {:.2f} us, M/G/1 {:.2f} us, service alone {:.2f} us".format(*figures)
        + f": {ratio:.3f}x of theory   goal: within {P99_GOAL:.0%}",
        flush=True,
    )
    ratio = statistics.median(p99 / theory for p99, theory in zip(found, with_gaps, strict=True))
    print(f"  CPU gaps {still:.1%} of the time; with these gaps: {ratio:.3f}x of theory", flush=True)
