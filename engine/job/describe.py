"""Jobs and knobs in words, for events, summaries and status lines."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from engine.job.cpu_list import format_cpus
from engine.job.io_priority import format_priorities
from engine.job.knobs import KNOBS, KNOBS_BY_KEY, Knobs
from engine.job.sizes import format_duration, format_number, format_size
from engine.job.spec import Access, Arrival, JobSpec


class KnobChange(Struct, frozen=True):
    """One knob that was turned; before and after as people write them."""

    knob: str
    title: str
    before: str | int | float | None
    after: str | int | float | None

    @property
    def text(self) -> str:
        """As in "queue depth 8 -> 16"."""
        return f"{self.title} {_words(self.before)} -> {_words(self.after)}"


def _words(value: str | float | None) -> str:
    return "unlimited" if value is None else format_number(value) if isinstance(value, float) else str(value)


def knob_changes(old: Knobs, new: Knobs) -> list[KnobChange]:
    """Which knobs differ."""
    pairs = (KnobChange(knob.id, knob.name, knob.plain(old), knob.plain(new)) for knob in KNOBS.values())
    return [pair for pair in pairs if pair.before != pair.after]


def describe_knobs(knobs: Knobs) -> str:
    """As in "4k, 80 % read, QD 8, stripe width 2, at most 5000 IOPS"."""
    phrases = (knob.phrase(knobs) for knob in KNOBS_BY_KEY.values() if knob.phrase is not None)
    return ", ".join(filter(None, phrases))


def describe_job(job: JobSpec) -> str:
    """As in "random, direct, 4k, read, QD 8, stripe width 1"."""
    access = "random" if job.access is Access.RANDOM else "sequential"
    access = f"{access} in {job.streams} streams" if job.streams > 1 else access
    words = [access, job.knobs.mode, describe_knobs(job.knobs), *_layout(job)]
    words += [] if job.arrival is Arrival.CLOSED else [f"{job.arrival} arrivals"]
    words += ["polling"] if job.poll else []
    words += list(_extent(job))
    return ", ".join([*words, "verified"] if job.verify else words)


def _extent(job: JobSpec) -> Iterator[str]:
    """Say where I/Os go, and when they end or pause, unless it is as usual."""
    if job.offset_bytes:
        yield f"from {format_size(job.offset_bytes)}"
    if job.jump_bytes:
        yield f"{'back' if job.jump_bytes < 0 else 'leaving out'} {format_size(abs(job.jump_bytes))} after each block"
    if job.separate:
        yield "reads and writes apart"
    if job.align_bytes is not None:
        yield f"aligned to {format_size(job.align_bytes)}"
    if job.ends_by_bytes:
        once = "all of it" if job.io_bytes is None else format_size(job.io_bytes)
        yield f"ends after {once}" + (f" {job.loops} times" if (job.loops or 1) > 1 else "")
    if job.ramp_s:
        yield f"ramp {format_duration(job.ramp_s)}"
    if job.think_s:
        every = f" after every {job.think_every} I/Os" if job.think_every > 1 else " after each I/O"
        yield f"pauses {format_duration(job.think_s)}{every}"
    if job.priorities:
        yield f"I/O priority {format_priorities(job.priorities)}"
    if job.cpus:
        yield f"threads on CPUs {format_cpus(job.cpus)}"
    if job.rate_min is not None:
        yield f"fails below {job.rate_min.words(job.rate_min.per_s)}"


def uses_policy(job: JobSpec) -> bool:
    """Whether the job has anything that a path policy chooses among."""
    return job.copies > 1 or any(target.paths for target in job.targets)


def _layout(job: JobSpec) -> list[str]:
    words = [f"{job.copies} copies"] if job.copies > 1 else []
    words += ["QD over all targets"] if job.total_queue_depth else []
    return words + ([f"policy {job.knobs.policy}"] if uses_policy(job) else [])
