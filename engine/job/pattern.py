"""Block sizes, distributions and orders that offsets can be drawn by."""

from __future__ import annotations

from collections.abc import Iterator

from engine.job.distribution import Distribution, Permutation, Uniform, distribution_problem
from engine.job.distribution_text import format_distribution
from engine.job.problem import Problem
from engine.job.shares import adds_up
from engine.job.sizes import format_size
from engine.job.spec import MAX_BLOCK_BYTES, MAX_STREAMS, Access, BlockShare, JobSpec, Knobs, Mode

SECTOR_BYTES = 512
"""No disk does direct I/O in smaller units."""


def pattern_problems(knobs: Knobs) -> Iterator[Problem]:
    """List what is wrong with block sizes and distributions by themselves."""
    yield from _block_problems("bs", knobs.blocks, knobs.mode)
    if knobs.write_blocks is not None:
        yield from _block_problems("write-bs", knobs.write_blocks, knobs.mode)
    yield from _distribution_problems("distribution", knobs.distribution)
    if knobs.write_distribution is not None:
        yield from _distribution_problems("write-distribution", knobs.write_distribution)


def _block_problems(option: str, blocks: tuple[BlockShare, ...], mode: Mode) -> Iterator[Problem]:
    step = SECTOR_BYTES if mode is Mode.DIRECT else 1
    for share in blocks:
        size = share.block_bytes
        if not 1 <= size <= MAX_BLOCK_BYTES:
            yield Problem(option, f"{format_size(size)} is out of range: 512 to {format_size(MAX_BLOCK_BYTES)}")
        elif size % step:
            yield Problem(
                option, f"{size} is not a multiple of 512, which direct I/O needs: use such a size or --mode buffered"
            )
        if not 0 < share.percent <= 100:
            yield Problem(option, f"a share of {share.percent:g} % is out of range: above 0 up to 100")
    percents = [share.percent for share in blocks]
    if not adds_up(percents):
        yield Problem(option, f"the shares of the mix add up to {sum(percents):g} %, not 100")


def _distribution_problems(option: str, distribution: Distribution) -> Iterator[Problem]:
    problem = distribution_problem(distribution)
    if problem:
        yield Problem(option, f"{distribution.kind}: {problem}")


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
