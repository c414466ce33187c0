"""Latency of the load by stage: from submission through the block layer and the device to reaping."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collectors.latency.load_ios import LoadIo
    from collectors.latency.slow_ios import SlowIo


class Stage(StrEnum):
    """Stages in which an I/O of the load spends time, in order."""

    SUBMIT = "submit"
    THROTTLE = "throttle wait"
    TAG = "tag wait"
    QUEUE = "queue"
    SERVICE = "service"
    REAP = "reap"
    OUTSIDE = "outside"
    """Time before and after the block layer together, where the two cannot be separated."""


CLOCK_SLACK_NS = 50_000
"""Tolerance between time stamps of engine and kernel: the engine reads its clock once per batch."""
_LEAST_SHARE = 0.5
"""A stage with at least this share is named alone."""

_WORDS = {
    Stage.SUBMIT: "passes before the block layer",
    Stage.THROTTLE: "waits for limits of its control group (io.max, blkio.throttle)",
    Stage.TAG: "waits for a tag: the queue is full",
    Stage.QUEUE: "waits in the scheduler",
    Stage.SERVICE: "is the device's: driver, fabric, disk",
    Stage.REAP: "passes until the load reaps it: busy CPUs",
    Stage.OUTSIDE: "passes outside the block layer",
}


class Waterfall(Struct, frozen=True):
    """Time per I/O by stage, in order; the sum is the whole time."""

    parts: tuple[tuple[Stage, float], ...]
    """Nanoseconds."""

    @property
    def total_ns(self) -> float:
        """Sum of all stages."""
        return sum(time_ns for _, time_ns in self.parts)

    def share(self, stage: Stage) -> float:
        """Share of a stage, 0 to 1; NaN if the sum is 0."""
        own = sum(time_ns for each, time_ns in self.parts if each is stage)
        return own / self.total_ns if self.total_ns > 0 else math.nan

    def verdict(self) -> str:
        """Name the stage with the largest share; two stages if none has half of the time."""
        ordered = sorted(self.parts, key=lambda part: -part[1])
        if not ordered or not self.total_ns > 0:
            return ""
        stages = ordered[: 1 if self.share(ordered[0][0]) >= _LEAST_SHARE else 2]
        return "; ".join(f"{100 * self.share(stage):.0f} % {_WORDS[stage]}" for stage, _ in stages)


def mean_waterfall(
    latency_ns: float, tag_ns: float, queue_ns: float, service_ns: float, throttle_ns: float = math.nan
) -> Waterfall | None:
    """Split the mean latency of the load by the means of its device; None if they cannot be of the same I/Os.

    Args:
        latency_ns: mean of the load from submit to reap.
        tag_ns: mean wait for a tag; NaN if not timed: it is then part of the outside stage.
        queue_ns: mean queue time of the device.
        service_ns: mean service time of the device.
        throttle_ns: mean wait for limits of its control group; NaN if not timed: it is then part of the outside stage.
    """
    known = sum(0.0 if math.isnan(wait_ns) else wait_ns for wait_ns in (throttle_ns, tag_ns)) + queue_ns + service_ns
    if not latency_ns > 0 or math.isnan(known) or known > latency_ns * 1.05 + CLOCK_SLACK_NS:
        return None
    waits = [(Stage.THROTTLE, throttle_ns), (Stage.TAG, tag_ns)]
    inside = [*waits, (Stage.QUEUE, queue_ns), (Stage.SERVICE, service_ns)]
    stages = [(stage, time_ns) for stage, time_ns in inside if not math.isnan(time_ns)]
    return Waterfall((*stages, (Stage.OUTSIDE, max(latency_ns - known, 0.0))))


class MatchedIo(Struct, frozen=True):
    """One I/O of the load and its stages as traced in the kernel."""

    load: LoadIo
    kernel: SlowIo
    waterfall: Waterfall


def matched(load_io: LoadIo, kernel_io: SlowIo) -> MatchedIo:
    """Split the time of an I/O of the load by the stages of the kernel's I/O that it was."""
    return MatchedIo(load_io, kernel_io, _laid_together(load_io, kernel_io))


def match(load_ios: Sequence[LoadIo], kernel_ios: Sequence[SlowIo]) -> Iterator[tuple[int, int]]:
    """Match I/Os of the load with those of the kernel, by position in both, each once; ambiguous ones are left out.

    The kernel's I/O lies within the time of the load's I/O and has the same device, direction and size. If several
    match, only one at the same offset of the device counts, which is unknown for files.
    """
    free = dict(enumerate(kernel_ios)) if load_ios else {}
    for position, io in enumerate(load_ios):
        fitting = [(number, other) for number, other in free.items() if _fits(io, other)]
        placed = [(number, other) for number, other in fitting if _starts_at(other, io.offset)]
        chosen = placed or fitting
        if len(chosen) == 1:
            number = chosen[0][0]
            del free[number]
            yield position, number


def _starts_at(io: SlowIo, offset: int) -> bool:
    return io.sector is not None and io.sector * 512 == offset


def _fits(io: LoadIo, other: SlowIo) -> bool:
    began_ns = other.time_ns - other.latency_ns
    return (
        (other.major, other.minor) == (io.major, io.minor)
        and other.operation == io.direction
        and other.size_bytes == io.size_bytes
        and began_ns >= io.issued_ns - CLOCK_SLACK_NS
        and other.time_ns <= io.issued_ns + io.latency_ns + CLOCK_SLACK_NS
    )


def _laid_together(io: LoadIo, other: SlowIo) -> Waterfall:
    submit_ns = max(other.time_ns - other.latency_ns - io.issued_ns, 0)
    reap_ns = max(io.issued_ns + io.latency_ns - other.time_ns, 0)
    inside = [(Stage.TAG, other.tag_wait_ns), (Stage.QUEUE, other.queue_ns), (Stage.SERVICE, other.service_ns)]
    stages = [(stage, float(time_ns)) for stage, time_ns in inside if time_ns is not None]
    return Waterfall(((Stage.SUBMIT, float(submit_ns)), *stages, (Stage.REAP, float(reap_ns))))
