"""Jobs and knobs in words, for events, summaries and status lines."""

from __future__ import annotations

from dataclasses import dataclass

from engine.job.distribution import Uniform
from engine.job.distribution_text import format_distribution
from engine.job.sizes import format_blocks
from engine.job.spec import Access, Arrival, JobSpec, Knobs

AS_READS, NEVER, UNLIMITED = "as of reads", "never", "unlimited"
"""Words for knobs that are not set."""


@dataclass(frozen=True, slots=True)
class KnobChange:
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
    return UNLIMITED if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def knob_changes(old: Knobs, new: Knobs) -> list[KnobChange]:
    """Which knobs differ."""
    pairs = (
        KnobChange("queue_depth", "queue depth", old.queue_depth, new.queue_depth),
        KnobChange("stripe_width", "stripe width", old.stripe_width, new.stripe_width),
        KnobChange("blocks", "block size", format_blocks(old.blocks), format_blocks(new.blocks)),
        KnobChange("read_pct", "read share %", old.read_pct, new.read_pct),
        KnobChange("rate_iops", "rate limit", old.rate_iops, new.rate_iops),
        KnobChange("policy", "path policy", old.policy.value, new.policy.value),
        KnobChange("write_blocks", "block size of writes", _own_blocks(old), _own_blocks(new)),
        KnobChange("distribution", "distribution", *map(format_distribution, (old.distribution, new.distribution))),
        KnobChange("write_distribution", "distribution of writes", _own_distribution(old), _own_distribution(new)),
        KnobChange("mode", "mode", old.mode.value, new.mode.value),
        KnobChange("threads", "threads", old.threads, new.threads),
        KnobChange("fsync_every", "writes per fsync", old.fsync_every or NEVER, new.fsync_every or NEVER),
    )
    return [pair for pair in pairs if pair.before != pair.after]


def _own_blocks(knobs: Knobs) -> str:
    return AS_READS if knobs.write_blocks is None else format_blocks(knobs.write_blocks)


def _own_distribution(knobs: Knobs) -> str:
    return AS_READS if knobs.write_distribution is None else format_distribution(knobs.write_distribution)


def describe_knobs(knobs: Knobs) -> str:
    """As in "4k, 80 % read, QD 8, stripe width 2, at most 5000 IOPS"."""
    parts = [_sizes(knobs), _mix(knobs.read_pct), f"QD {knobs.queue_depth}"]
    parts += [f"stripe width {knobs.stripe_width}"]
    parts += [_places(knobs)] if knobs.distribution != Uniform() or knobs.write_distribution is not None else []
    parts += [f"{knobs.threads} threads"] if knobs.threads > 1 else []
    parts += [f"fsync every {knobs.fsync_every} writes"] if knobs.fsync_every is not None else []
    parts += [f"at most {knobs.rate_iops:g} IOPS"] if knobs.rate_iops is not None else []
    return ", ".join(parts)


def _sizes(knobs: Knobs) -> str:
    if knobs.write_blocks is None:
        return format_blocks(knobs.blocks)
    return f"{format_blocks(knobs.blocks)} (writes {format_blocks(knobs.write_blocks)})"


def _places(knobs: Knobs) -> str:
    if knobs.write_distribution is None:
        return format_distribution(knobs.distribution)
    return f"{format_distribution(knobs.distribution)} (writes {format_distribution(knobs.write_distribution)})"


def _mix(read_pct: float) -> str:
    return {100.0: "read", 0.0: "write"}.get(read_pct, f"{read_pct:g} % read")


def describe_job(job: JobSpec) -> str:
    """As in "random, direct, 4k, read, QD 8, stripe width 1"."""
    access = "random" if job.access is Access.RANDOM else "sequential"
    access = f"{access} in {job.streams} streams" if job.streams > 1 else access
    words = [access, job.knobs.mode, describe_knobs(job.knobs), *_layout(job)]
    words += [] if job.arrival is Arrival.CLOSED else [f"{job.arrival} arrivals"]
    words += ["polling"] if job.poll else []
    return ", ".join([*words, "verified"] if job.verify else words)


def uses_policy(job: JobSpec) -> bool:
    """Whether the job has anything that a path policy chooses among."""
    return job.copies > 1 or any(target.paths for target in job.targets)


def _layout(job: JobSpec) -> list[str]:
    words = [f"{job.copies} copies"] if job.copies > 1 else []
    words += ["QD over all targets"] if job.total_queue_depth else []
    return words + ([f"policy {job.knobs.policy}"] if uses_policy(job) else [])
