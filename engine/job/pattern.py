"""Which distributions and orders of offsets fit together."""

from __future__ import annotations

from collections.abc import Iterator

from engine.job.distribution import Permutation, Uniform
from engine.job.distribution_text import format_distribution
from engine.job.problem import Problem
from engine.job.spec import MAX_STREAMS, Access, JobSpec, Knobs


def _permutation_problems(knobs: Knobs) -> Iterator[Problem]:
    whole = Permutation()
    if knobs.write_distribution is not None and (knobs.distribution == whole) != (knobs.write_distribution == whole):
        yield Problem("write-distribution", "permutation is for reads and writes together: leave this one out")
    if knobs.distribution == whole and len(knobs.block_sizes) > 1:
        yield Problem("distribution", "permutation needs one block size for all I/Os, not a mix")


def order_problems(job: JobSpec) -> Iterator[Problem]:
    """List what does not fit together in the order of offsets."""
    yield from _permutation_problems(job.knobs)
    if not 1 <= job.streams <= MAX_STREAMS:
        yield Problem("streams", f"{job.streams} is out of range: 1 to {MAX_STREAMS}")
    if job.access is Access.RANDOM and job.streams > 1:
        yield Problem("streams", f"{job.streams} need sequential order: use --rw read, write or rw")
    own = (("distribution", job.knobs.distribution), ("write-distribution", job.knobs.write_distribution))
    for option, distribution in own:
        if job.access is Access.SEQUENTIAL and not isinstance(distribution, Uniform | None):
            text = f"{format_distribution(distribution)} needs random order: use --rw randread, randwrite or randrw"
            yield Problem(option, text)
