"""What a reader should know before believing the numbers of a run."""

from __future__ import annotations

from collections.abc import Iterator

from engine.job import Arrival, Backend
from engine.result import RunResult
from engine.sizes import format_size

_SHORT_S = 1.0
_BUSY_SHARE = 0.9
"""From this share of its threads' time on, the generator may be the limit and not the storage."""


def caveats(result: RunResult) -> list[str]:
    """Gather notices of targets and engine and what the numbers themselves give away, one line each."""
    found = (
        _unsettled(result),
        _too_short(result),
        _split_blocks(result),
        _skipped(result),
        _not_polling(result),
        _driver_bound(result),
    )
    return [*result.about.notices, *(line for lines in found for line in lines)]


def _unsettled(result: RunResult) -> Iterator[str]:
    for epoch in result.epochs:
        if epoch.start_s is None:
            yield f"epoch {epoch.index} never settled; its {epoch.transient_ios:,} I/Os are in no statistic"


def _too_short(result: RunResult) -> Iterator[str]:
    if 0 < result.duration_s < _SHORT_S:
        yield f"measured for {result.duration_s:.2f} s only: too short to judge by"


def _split_blocks(result: RunResult) -> Iterator[str]:
    unit = result.about.job.stripe_unit_bytes
    for epoch in result.epochs:
        knobs = epoch.knobs
        if knobs.stripe_width > 1 and any(unit % size for size in knobs.block_sizes):
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
        f"overload: {result.skipped:,} arrivals ({100 * result.skipped / offered:.2g} %) found no room within a second "
        "and were skipped; latencies are those of the rest: lower the rate or raise the queue depth"
    )


def _not_polling(result: RunResult) -> Iterator[str]:
    if result.about.job.poll and result.about.engine.backend == Backend.THREADS:
        yield "polling was asked for, but the threads engine sleeps in the kernel"


def _driver_bound(result: RunResult) -> Iterator[str]:
    about = result.about
    if about.engine.backend != Backend.URING or not about.elapsed_s:
        return
    if about.job.poll or about.job.arrival is not Arrival.CLOSED:
        # It stays awake on purpose, so its time says nothing.
        return
    threads = about.job.knobs.threads
    share = result.cpu_ns / 1e9 / about.elapsed_s / threads
    if share >= _BUSY_SHARE:
        yield (
            f"driver-bound: the engine was busy {100 * share:.0f} % of the time with {threads} "
            f"thread{'s' if threads > 1 else ''}; the storage may be faster than shown: try --threads {2 * threads}"
        )
