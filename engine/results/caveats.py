"""What a reader should know before believing the numbers of a run."""

from __future__ import annotations

from collections.abc import Iterator

from engine.job.sizes import format_size
from engine.job.spec import Backend
from engine.results.badge import percent_text
from engine.results.layout_result import LogicalResult
from engine.results.result import RunResult

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


def _not_polling(result: RunResult) -> Iterator[str]:
    if result.about.job.poll and result.about.engine.backend == Backend.THREADS:
        yield "polling was asked for, but the threads engine sleeps in the kernel"
