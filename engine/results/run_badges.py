"""Badges derived from the figures of a run alone."""

from __future__ import annotations

from collections.abc import Iterator

from engine.backend.protocol import EpochStats
from engine.job.spec import Backend
from engine.results.badge import Badge, BadgeKind
from engine.results.result import EpochResult, RunResult

_SHORT_S = 1.0
_BUSY_SHARE = 0.9
"""From this share of its threads' time on, the generator may be the limit and not the storage."""
_LEAST_MEASURED_NS = 500_000_000
"""Before so much was measured of an epoch nothing is said of the generator."""
_HOST_BUSY_PCT = 95.0


def run_badges(result: RunResult) -> tuple[Badge, ...]:
    """List everything to know before believing a run: of its targets first, then of the run itself."""
    return (
        *result.about.badges,
        *_driver_bound(result),
        *_host_busy(result),
        *_few_samples(result),
        *_short(result),
    )


def _driver_bound(result: RunResult) -> Iterator[Badge]:
    backend = result.about.engine.backend
    if result.about.job.stays_awake:
        return
    bound = [epoch for epoch in result.epochs if backend == Backend.URING and _busy_share(epoch) >= _BUSY_SHARE]
    if not bound:
        return
    worst = max(bound, key=_busy_share)
    when = "" if len(result.epochs) == 1 else f" in epoch {worst.index}"
    yield _bound_badge(_busy_share(worst), worst.knobs.threads, when)


def _busy_share(epoch: EpochResult) -> float:
    """Share of the time of its threads that the engine used; 0 where it is not known."""
    if epoch.cpu is None or epoch.duration_s * 1e9 < _LEAST_MEASURED_NS:
        return 0.0
    return epoch.cpu.engine_ns / 1e9 / epoch.duration_s / epoch.knobs.threads


def live_badges(backend: Backend, epoch: EpochStats, now_ns: int) -> Iterator[Badge]:
    """List the badges of the open epoch so far."""
    if backend is not Backend.URING or epoch.cpu_ns is None or epoch.start_ns is None:
        return
    measured_ns = (now_ns if epoch.end_ns is None else epoch.end_ns) - epoch.start_ns
    threads = epoch.knobs.threads
    share = epoch.cpu_ns[0] / measured_ns / threads if measured_ns >= _LEAST_MEASURED_NS else 0.0
    if share >= _BUSY_SHARE:
        yield _bound_badge(share, threads, "")


def _bound_badge(share: float, threads: int, when: str) -> Badge:
    text = (
        f"driver-bound: the engine was busy {100 * share:.0f} % of the time{when} with {threads} "
        f"thread{'s' if threads > 1 else ''}; the storage may be faster than shown: try --threads {2 * threads}"
    )
    return Badge(BadgeKind.DRIVER_BOUND, "driver-bound", text, share=min(share, 1.0))


def _host_busy(result: RunResult) -> Iterator[Badge]:
    cpu = result.cpu
    busy = cpu.host_busy_pct if cpu is not None else None
    if busy is not None and busy >= _HOST_BUSY_PCT:
        text = f"the host's processors were busy {busy:.0f} % of the time: they may be the limit and not the storage"
        yield Badge(BadgeKind.HOST_BUSY, f"host busy {busy:.0f} %", text, share=busy / 100)


def _few_samples(result: RunResult) -> Iterator[Badge]:
    few = [epoch for epoch in result.epochs if epoch.split.total.ios and epoch.split.total.percentile_ns(99.9) is None]
    if few:
        where = "" if len(result.epochs) == 1 else f" in {len(few)} of {len(result.epochs)} epochs"
        text = f"a - stands for a percentile that needs more I/Os than there were{where} (p99: 100, p99.9: 1,000)"
        yield Badge(BadgeKind.FEW_SAMPLES, "few samples", text)


def _short(result: RunResult) -> Iterator[Badge]:
    if 0 < result.duration_s < _SHORT_S:
        text = f"measured for {result.duration_s:.2f} s only: too short to judge by"
        yield Badge(BadgeKind.SHORT, "short", text)
