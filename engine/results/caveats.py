"""What a reader should know before believing the numbers of a run."""

from __future__ import annotations

from collections.abc import Iterator

from engine.job.sizes import format_size
from engine.job.spec import Backend
from engine.results.badge import percent_text
from engine.results.layout_text import layout_notes
from engine.results.result import RunResult


def caveats(result: RunResult) -> list[str]:
    """Gather notices of targets and engine and what the numbers themselves give away, one line each."""
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
        f"overload: {result.skipped:,} arrivals ({percent_text(result.skipped / offered)} %) found no room within a "
        "second and were skipped; latencies are those of the rest: lower the rate or raise the queue depth"
    )


def _not_polling(result: RunResult) -> Iterator[str]:
    if result.about.job.poll and result.about.engine.backend == Backend.THREADS:
        yield "polling was asked for, but the threads engine sleeps in the kernel"
