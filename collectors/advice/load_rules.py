"""Findings from the figures of the engine alone."""

from __future__ import annotations

import math
from collections.abc import Iterator

from collectors.advice.figures import LoadFigures, TargetFigures
from collectors.advice.finding import Confidence, Evidence, Finding, FindingKind
from engine.results.waiting import WAITED_SHARE

LEAST_IOS = 100
"""A load, and each target that is compared, needs as many: with fewer a mean is chance."""
LEAST_S = 0.5
"""Least measured time: shorter ones are within the ticks of CPU accounting and the start of the load."""
_DRIVER_SHARE = 0.9
"""Share of the time of its threads: the limit of the badge driver-bound (engine/results/caveats.py)."""
_DRIVER_FULL = 0.98
"""No time is left in which a thread waits for storage."""
_HOST_BUSY_PCT = 95.0
"""No processor is left."""
_LEAST_USED_PCT = 5.0
_AT_RATE = 0.98
"""Pacing is exact; what is missing is the end of the measurement."""
_COST_PCT = 10.0
"""Cost of the slowest target in mean latency: equal disks differ by up to 5 %."""
_CLEAR_COST_PCT = 25.0


def is_measured(load: LoadFigures) -> bool:
    """Whether there are enough I/Os and time to say anything."""
    return load.ios >= LEAST_IOS and load.duration_s >= LEAST_S


def load_findings(load: LoadFigures) -> Iterator[Finding]:
    """Find what the engine's own figures show: processors, its rate, its targets."""
    if is_measured(load):
        yield from _processors(load)
        yield from _own_rate(load)
        yield from _unused_targets(load)
        yield from _slow_target(load)


def is_driver_bound(load: LoadFigures) -> bool:
    """Whether its own threads limited it, so that latencies say little of the storage; unknown is no."""
    return load.engine_share >= _DRIVER_SHARE


def waited_for_processor(load: LoadFigures) -> bool:
    """Whether waits for a processor are a good part of its latencies; unknown is no."""
    return load.waiting_share >= WAITED_SHARE


def may_have_waited(load: LoadFigures) -> bool:
    """Whether they may be: also of a busy host where the kernel does not say."""
    return waited_for_processor(load) or (math.isnan(load.waiting_share) and load.host_busy_pct >= _HOST_BUSY_PCT)


def is_at_rate(load: LoadFigures) -> bool:
    """Whether it reached the rate that was asked for."""
    return load.iops >= _AT_RATE * load.rate_iops


def _processors(load: LoadFigures) -> Iterator[Finding]:
    """CPU-bound: threads that never wait for storage, or that wait for a processor.

    Time of the engine's threads is exact, so 98 % is certain. A wait for a processor is likely only: the storage may
    have been full meanwhile.
    """
    host = (Evidence("host CPU", load.host_busy_pct, "%"),) if load.host_busy_pct >= 0 else ()
    waiting = (Evidence("waited for a CPU", 100 * load.waiting_share, "%"),) if load.waiting_share >= 0 else ()
    if waited_for_processor(load):
        yield Finding(
            FindingKind.HOST_CPU,
            Confidence.LIKELY,
            f"the engine's threads wait for a processor of this host {100 * load.waiting_share:.0f} % of the time, and "
            "latencies hold that wait: stop other work on it, or use larger blocks or a faster host",
            (*waiting, *host, *_users(load)),
        )
    if is_driver_bound(load):
        full = load.engine_share >= _DRIVER_FULL
        change = f"--threads {2 * load.threads} or larger blocks"
        if load.host_busy_pct >= _HOST_BUSY_PCT:
            change = "larger blocks, as no processor is left for more threads"
        yield Finding(
            FindingKind.DRIVER,
            Confidence.CERTAIN if full else Confidence.LIKELY,
            f"the engine's threads are busy, not the storage: they use {load.engine_share * load.threads:.2f} of the "
            f"{load.threads} CPU{'s' if load.threads > 1 else ''} that they can; use {change}",
            (Evidence("engine threads busy", 100 * load.engine_share, "%"), Evidence("threads", load.threads), *host),
        )


def _users(load: LoadFigures) -> Iterator[Evidence]:
    """Name who took the processors: the processes that used a twentieth of them or more."""
    for user in load.cpu_users:
        if user.share_pct >= _LEAST_USED_PCT:
            yield Evidence(f"CPU of {user.name} ({user.pid})", user.share_pct, "% of the host", "kernel")


def _own_rate(load: LoadFigures) -> Iterator[Finding]:
    """Rate reached: nothing is known of what the storage can do beyond it."""
    if is_at_rate(load):
        yield Finding(
            FindingKind.OWN_RATE,
            Confidence.CERTAIN,
            "the load reaches the rate that was asked for: raise --rate to find the limit of the storage",
            (Evidence("IOPS", load.iops), Evidence("rate", load.rate_iops, "IOPS")),
        )


def _unused_targets(load: LoadFigures) -> Iterator[Finding]:
    """Stripe width below the number of targets: some are idle."""
    used = len(load.targets)
    if 0 < used < load.given_targets:
        yield Finding(
            FindingKind.FEW_DISKS,
            Confidence.CERTAIN,
            f"the load is on {used} of {load.given_targets} targets: raise --stripe-width to use all",
            (Evidence("stripe width", used), Evidence("targets", load.given_targets)),
        )


def _slow_target(load: LoadFigures) -> Iterator[Finding]:
    """One target slower than its peers: the mean latency without it would be lower by its cost.

    Where I/Os span targets the engine measures for how long only this one was outstanding (certain from 25 % on).
    Elsewhere the cost is the difference between the mean of all I/Os and of those to the others, which a target that
    got larger or colder I/Os has, too.
    """
    targets = load.targets
    if len(targets) < 2 or min(target.ios for target in targets) < LEAST_IOS:
        return
    slowest = max(targets, key=lambda target: (target.waited_pct or 0.0, target.latency_ns))
    cost_pct = _cost_pct(slowest, targets)
    if cost_pct < _COST_PCT:
        return
    clear = cost_pct >= _CLEAR_COST_PCT
    measured = slowest.waited_pct is not None
    confidence = Confidence.CERTAIN if clear and measured else Confidence.LIKELY if clear else Confidence.HINT
    others = [target.latency_ns for target in targets if target is not slowest]
    yield Finding(
        FindingKind.SLOW_TARGET,
        confidence,
        f"{slowest.name} is slower than its peers and holds the load up: check or replace it, or leave it out",
        (
            Evidence("its mean latency", slowest.latency_ns / 1e6, "ms"),
            Evidence("that of the others", sum(others) / len(others) / 1e6, "ms"),
            Evidence("cost", cost_pct, "% of the mean latency"),
        ),
        (slowest.name,),
    )


def _cost_pct(slowest: TargetFigures, targets: tuple[TargetFigures, ...]) -> float:
    if slowest.waited_pct is not None:
        return slowest.waited_pct
    others = [target for target in targets if target is not slowest]
    mean_ns = sum(target.ios * target.latency_ns for target in targets) / sum(target.ios for target in targets)
    others_ns = sum(target.ios * target.latency_ns for target in others) / sum(target.ios for target in others)
    return 100 * (1 - others_ns / mean_ns) if mean_ns else 0.0
