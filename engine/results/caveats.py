"""Badges and caveats derived from a run: what a reader should know before believing its numbers."""

from __future__ import annotations

from collections.abc import Iterator

from engine.backend.protocol import EpochStats
from engine.job.sizes import format_size
from engine.job.spec import Backend
from engine.results.badge import Badge, BadgeKind, percent_text
from engine.results.layout_result import LogicalResult
from engine.results.result import EpochResult, RunResult
from engine.results.steadiness import steady_badges
from engine.results.waiting import WAITED_SHARE, waiting_share

_SHORT_S = 1.0
_BUSY_SHARE = 0.9
"""Share of its threads' time from which the generator may be the limit, and not the storage."""
_LEAST_MEASURED_NS = 500_000_000
"""An epoch says something of the generator only once this much was measured."""
_HOST_BUSY_PCT = 95.0


def run_badges(result: RunResult) -> tuple[Badge, ...]:
    """List everything to know before believing a run: of its targets first, then of the run itself."""
    return (
        *result.about.badges,
        *_driver_bound(result),
        *_host_busy(result),
        *_few_samples(result),
        *_short(result),
        *_steady(result),
    )


def _steady(result: RunResult) -> Iterator[Badge]:
    found, about = result.steadiness, result.about
    if found is not None:
        wanted = about.solid_state and "write" in found.directions
        yield from steady_badges(found, about.job, wanted=wanted, epochs=len(result.epochs))


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
    backend, one_queue = result.about.engine.backend, result.about.job.total_queue_depth
    shares = (waiting_share(epoch, backend, one_queue=one_queue) for epoch in result.epochs)
    waited = max((share for share in shares if share is not None), default=0)
    if waited >= WAITED_SHARE:
        text = (
            f"the engine's threads waited for a processor {100 * waited:.0f} % of the time: the processors may be the "
            "limit and not the storage"
        )
        yield Badge(BadgeKind.HOST_BUSY, f"waited for CPU {100 * waited:.0f} %", text, share=waited)
    elif busy is not None and busy >= _HOST_BUSY_PCT:
        text = (
            f"the host's processors were busy {busy:.0f} % of the time: what shares them with the load may vary; "
            "repeat when the host is idle"
        )
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


_FEW_IOS = 100
"""Below, which target is the slowest is chance."""


def layout_notes(result: RunResult) -> Iterator[str]:
    """Say what the fan-out cost, which target was the slowest, and what choosing paths took."""
    if result.logical is not None:
        yield _amplification(result, result.logical)
        yield from _slowest(result.logical)
    costs = [epoch.policy_ns for epoch in result.epochs if epoch.policy_ns is not None]
    if costs:
        yield f"choosing a path cost {sum(costs) / len(costs):.0f} ns of CPU per I/O"


def _amplification(result: RunResult, logical: LogicalResult) -> str:
    unit = format_size(result.about.job.stripe_unit_bytes)
    copies = result.about.job.copies
    layout = f"mirrored on {copies} targets" if copies > 1 else f"cut by the stripe unit ({unit})"
    times = [
        f"{title} {factor:.2f} times"
        for title, factor in (
            ("mean", logical.mean_amplification),
            ("p99", logical.amplification(99)),
            ("p99.9", logical.amplification(99.9)),
        )
        if factor is not None
    ]
    each = logical.parts.ios / logical.split.total.ios if logical.split.total.ios else 0
    factors = f": {', '.join(times)} that of a part" if times else ""
    return (
        f"I/Os were {layout} into {each:.1f} parts each, to which the figures of targets and totals belong; "
        f"an I/O is as slow as its slowest part{factors}"
    )


def _slowest(logical: LogicalResult) -> Iterator[str]:
    slowest = logical.slowest
    if slowest is None or logical.split.total.ios < _FEW_IOS:
        return
    cost, last = logical.cost_pct(slowest), logical.last_pct(slowest)
    if cost is not None and last is not None:
        yield (
            f"slowest disk {slowest.target}: last in {last:.0f} % of the I/Os, it costs {cost:.0f} % of their latency"
        )


def caveats(result: RunResult) -> list[str]:
    """Gather notices of targets and engine and caveats from the figures themselves, one line each."""
    found = (
        _unsettled(result),
        _split_blocks(result),
        layout_notes(result),
        _skipped(result),
        _not_polling(result),
        _missed_steady(result),
    )
    return [*result.about.notices, *(line for lines in found for line in lines)]


def _unsettled(result: RunResult) -> Iterator[str]:
    for epoch in result.epochs:
        if epoch.start_s is None:
            yield f"epoch {epoch.index} too short: {epoch.transient_ios:,} I/Os excluded"


def _split_blocks(result: RunResult) -> Iterator[str]:
    """Blocks that were cut by an engine that measures their parts only."""
    unit = result.about.job.stripe_unit_bytes
    for epoch in result.epochs:
        knobs = epoch.knobs
        if result.logical is None and knobs.stripe_width > 1 and any(unit % size for size in knobs.block_sizes):
            yield (
                f"blocks that do not lie within one stripe unit ({format_size(unit)}) were split: "
                "IOPS and latencies are those of the parts, each on one target"
            )
            return


def _skipped(result: RunResult) -> Iterator[str]:
    if not result.skipped:
        return
    offered = result.completed_ios + result.failed_ios + result.skipped
    yield (
        f"overload: {result.skipped:,} arrivals ({percent_text(result.skipped / offered)} %) found no free slot within "
        "a second and were skipped; latencies are those of the rest: lower the rate or raise the queue depth"
    )


def _missed_steady(result: RunResult) -> Iterator[str]:
    if result.missed_steady:
        yield f"--until-steady: no steady state within {result.about.elapsed_s:.0f} s: give a longer --runtime"


def _not_polling(result: RunResult) -> Iterator[str]:
    if result.about.job.poll and result.about.engine.backend == Backend.THREADS:
        yield "polling was asked for, but the threads engine sleeps in the kernel"
