"""Who owns the latency of the load: from submission through the block layer and the device to reaping."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from collectors.latency.slow_ios import SlowIo
from collectors.latency.slow_load import LoadIo
from collectors.latency.stage import Stage

CLOCK_SLACK_NS = 50_000
"""By what stamps of the engine and of the kernel may seem to cross: the engine reads its clock for a batch at once."""
_LEAST_SHARE = 0.5
"""A part that owns at least this much is named alone."""

_WORDS = {
    Stage.SUBMIT: "passes before the block layer",
    Stage.TAG: "waits for a tag: the queue is full",
    Stage.QUEUE: "waits in the scheduler",
    Stage.SERVICE: "is the device's: driver, fabric, disk",
    Stage.REAP: "passes until the load reaps it: busy CPUs",
    Stage.OUTSIDE: "passes outside the block layer",
}


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Time per I/O by stage, in the order it passes; together they are the whole."""

    parts: tuple[tuple[Stage, float], ...]
    """Nanoseconds."""

    @property
    def total_ns(self) -> float:
        """The whole."""
        return sum(time_ns for _, time_ns in self.parts)

    def share(self, stage: Stage) -> float:
        """Share of a stage, 0 to 1; NaN of nothing."""
        own = sum(time_ns for each, time_ns in self.parts if each is stage)
        return own / self.total_ns if self.total_ns > 0 else math.nan

    def verdict(self) -> str:
        """Say in words who owns it; two owners where none has half of it."""
        ordered = sorted(self.parts, key=lambda part: -part[1])
        if not ordered or not self.total_ns > 0:
            return ""
        told = ordered[: 1 if self.share(ordered[0][0]) >= _LEAST_SHARE else 2]
        return "; ".join(f"{100 * self.share(stage):.0f} % {_WORDS[stage]}" for stage, _ in told)


def mean_waterfall(latency_ns: float, tag_ns: float, queue_ns: float, service_ns: float) -> Waterfall | None:
    """Lay the means of a device into the mean of the load; None where they cannot be of the same I/Os.

    Args:
        latency_ns: mean of the load from submit to reap.
        tag_ns: mean wait for a tag; NaN where nobody watched, which leaves it in what is outside.
        queue_ns: mean queue time of the device.
        service_ns: mean service time of the device.
    """
    known = (0.0 if math.isnan(tag_ns) else tag_ns) + queue_ns + service_ns
    if not latency_ns > 0 or math.isnan(known) or known > latency_ns * 1.05 + CLOCK_SLACK_NS:
        return None
    inside = [(Stage.TAG, tag_ns), (Stage.QUEUE, queue_ns), (Stage.SERVICE, service_ns)]
    told = [(stage, time_ns) for stage, time_ns in inside if not math.isnan(time_ns)]
    return Waterfall((*told, (Stage.OUTSIDE, max(latency_ns - known, 0.0))))


@dataclass(frozen=True, slots=True)
class MatchedIo:
    """One I/O of the load with what the kernel saw of it."""

    load: LoadIo
    kernel: SlowIo
    waterfall: Waterfall


def match(load_ios: Sequence[LoadIo], kernel_ios: Sequence[SlowIo]) -> Iterator[MatchedIo]:
    """Find the kernel's side of I/Os of the load, each once; what cannot be told for sure is left out.

    The kernel's part lies within that of the load, on its device, in its direction, with its size. Where several fit,
    only the one at the same place of the device will do, which files do not have.
    """
    free = list(kernel_ios)
    for io in load_ios:
        fitting = [other for other in free if _fits(io, other)]
        placed = [other for other in fitting if other.sector is not None and other.sector * 512 == io.offset]
        chosen = placed or fitting
        if len(chosen) == 1:
            free.remove(chosen[0])
            yield MatchedIo(io, chosen[0], _laid_together(io, chosen[0]))


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
    told = [(stage, float(time_ns)) for stage, time_ns in inside if time_ns is not None]
    return Waterfall(((Stage.SUBMIT, float(submit_ns)), *told, (Stage.REAP, float(reap_ns))))
