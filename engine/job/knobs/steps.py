"""One step of a knob: which value comes next."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.job.distribution import Permutation, Uniform, Zipf, hot_and_cold
from engine.job.knobs.knob import Step, StepContext, StepKey, StepSize
from engine.job.limits import MAX_BLOCK_BYTES, MAX_QUEUE_DEPTH, MAX_THREADS, SECTOR_BYTES
from engine.job.sizes import BlockShare
from engine.replacing import replace

if TYPE_CHECKING:
    from engine.job.knobs.values import Knobs

QUEUE_DEPTHS = tuple(sorted({1, *(2**n for n in range(1, 13)), *(3 * 2**n for n in range(11))}))
"""1 2 3 4 6 8 12 16 24 32 48 ... 4096: half an octave a step."""
RATES = tuple(float(mantissa * 10**exponent) for exponent in range(1, 7) for mantissa in (1, 2, 5))
THREADS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, MAX_THREADS)
POWERS_OF_TEN = tuple(float(10**exponent) for exponent in range(1, 7))
DOUBLED_THREADS = (*(2**n for n in range(10)), MAX_THREADS)
READ_SHARES = tuple(float(percent) for percent in range(0, 101, 10))
HALF_READ_SHARES = (0.0, 50.0, 100.0)
FINE_BLOCK_BYTES = 4096
"""A fine step of a block size; below it is a sector."""
DISTRIBUTIONS = (Uniform(), Zipf(0.9), Zipf(1.2), hot_and_cold(90, 10), hot_and_cold(99, 1), Permutation())


def up_and_down(
    name: str, titles: tuple[str, str], keys: tuple[str, str], step: Step, words: tuple[str, str] = ("up", "down")
) -> tuple[StepKey, StepKey]:
    """Make the two keys of a knob: the next value, and the one before."""
    return (
        StepKey(f"{name}_{words[0]}", titles[0], keys[0], step, 1),
        StepKey(f"{name}_{words[1]}", titles[1], keys[1], step, -1),
    )


def next_and_previous(name: str, titles: tuple[str, str], keys: tuple[str, str], step: Step) -> tuple[StepKey, StepKey]:
    """Make the two keys of a knob with unordered values."""
    return up_and_down(name, titles, keys, step, ("next", "previous"))


def along(field: str, ladder: Sequence[float]) -> Step:
    """Step to the next value of an ascending ladder."""

    def step(knobs: Knobs, direction: int, _context: StepContext) -> Knobs:
        return _with(knobs, field, _next_of(ladder, getattr(knobs, field), direction))

    return step


def around(field: str, choices: Sequence[object]) -> Step:
    """Step through choices in a circle; from a value that is not among them to their first or last."""

    def step(knobs: Knobs, direction: int, _context: StepContext) -> Knobs:
        value = getattr(knobs, field)
        first_or_last = 0 if direction > 0 else -1
        position = choices.index(value) + direction if value in choices else first_or_last
        return _with(knobs, field, choices[position % len(choices)])

    return step


def sized(normal: Step, *, fine: Step | None = None, coarse: Step | None = None) -> Step:
    """Make one step of several sizes; where there is none of a size, the normal one is taken."""
    steps = {StepSize.FINE: fine or normal, StepSize.COARSE: coarse or normal}

    def step(knobs: Knobs, direction: int, context: StepContext) -> Knobs:
        return steps.get(context.size, normal)(knobs, direction, context)

    return step


def by_one(field: str, least: int, most: int) -> Step:
    """Step by 1 within a range."""

    def step(knobs: Knobs, direction: int, _context: StepContext) -> Knobs:
        value = getattr(knobs, field)
        return _with(knobs, field, type(value)(min(max(value + direction, least), most)))

    return step


def depth_by_factor(knobs: Knobs, direction: int, _context: StepContext) -> Knobs:
    """Double or halve the queue depth."""
    depth = knobs.queue_depth * 2 if direction > 0 else knobs.queue_depth // 2
    return replace(knobs, queue_depth=min(max(depth, 1), MAX_QUEUE_DEPTH))


def width_by_columns(knobs: Knobs, direction: int, context: StepContext) -> Knobs:
    """Add or remove a target, or a column of a mirror."""
    step = context.copies
    return replace(knobs, stripe_width=min(max(knobs.stripe_width + direction * step, step), context.targets))


def width_to_end(knobs: Knobs, direction: int, context: StepContext) -> Knobs:
    """Take all targets, or one column."""
    return replace(knobs, stripe_width=context.targets if direction > 0 else min(context.copies, context.targets))


def blocks_by_four(knobs: Knobs, direction: int, context: StepContext) -> Knobs:
    """Multiply or divide all block sizes by 4, or by 2 where 4 would be out of range."""
    return blocks_by_factor(blocks_by_factor(knobs, direction, context), direction, context)


def blocks_by_sectors(knobs: Knobs, direction: int, context: StepContext) -> Knobs:
    """Step a block size by 4 KiB, below that by a sector; a mix is doubled or halved."""
    if len(knobs.blocks) > 1 or knobs.write_blocks is not None:
        return blocks_by_factor(knobs, direction, context)
    (share,) = knobs.blocks
    above = share.block_bytes >= FINE_BLOCK_BYTES + (0 if direction > 0 else 1)
    size = share.block_bytes + direction * (FINE_BLOCK_BYTES if above else SECTOR_BYTES)
    if not SECTOR_BYTES <= size <= MAX_BLOCK_BYTES:
        return knobs
    return replace(knobs, blocks=(replace(share, block_bytes=size),))


def blocks_by_factor(knobs: Knobs, direction: int, _context: StepContext) -> Knobs:
    """Double or halve all block sizes, unless one would be out of range."""
    blocks = _scaled(knobs.blocks, direction)
    write_blocks = None if knobs.write_blocks is None else _scaled(knobs.write_blocks, direction)
    sizes = [share.block_bytes for share in (*blocks, *(write_blocks or ()))]
    if min(sizes) < SECTOR_BYTES or max(sizes) > MAX_BLOCK_BYTES:
        return knobs
    return replace(knobs, blocks=blocks, write_blocks=write_blocks)


def _scaled(blocks: tuple[BlockShare, ...], direction: int) -> tuple[BlockShare, ...]:
    sizes = (share.block_bytes * 2 if direction > 0 else share.block_bytes // 2 for share in blocks)
    return tuple(replace(share, block_bytes=size) for share, size in zip(blocks, sizes, strict=True))


def rate_from_load(knobs: Knobs, direction: int, context: StepContext) -> Knobs:
    """Step the rate limit; down from unlimited it begins below what the load does, and up past that it is lifted."""
    rate, iops = knobs.rate_iops, context.iops
    if rate is None:
        return knobs if direction > 0 else replace(knobs, rate_iops=_next_of(RATES, iops or RATES[-1], -1))
    is_no_limit = rate >= RATES[-1] or (iops is not None and iops < 0.9 * rate)
    if direction > 0 and is_no_limit:
        return replace(knobs, rate_iops=None)
    return replace(knobs, rate_iops=_next_of(RATES, rate, direction))


def rate_by_tenth(knobs: Knobs, direction: int, context: StepContext) -> Knobs:
    """Step the rate limit by a tenth; down from unlimited it begins at what the load does."""
    rate = knobs.rate_iops
    if rate is None:
        return knobs if direction > 0 else replace(knobs, rate_iops=max(1.0, float(round(context.iops or RATES[-1]))))
    step = max(1.0, _two_digits(rate / 10))
    return replace(knobs, rate_iops=min(max(1.0, rate + direction * step), max(rate, RATES[-1])))


def rate_by_ten(knobs: Knobs, direction: int, context: StepContext) -> Knobs:
    """Step the rate limit along the powers of ten, and past the last one lift it."""
    rate = knobs.rate_iops
    if rate is None:
        return rate_from_load(knobs, direction, context)
    if direction > 0 and rate >= POWERS_OF_TEN[-1]:
        return replace(knobs, rate_iops=None)
    return replace(knobs, rate_iops=_next_of(POWERS_OF_TEN, rate, direction))


def _two_digits(value: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(value)) - 1) if value > 0 else 1.0
    return round(value / unit) * unit


def _with(knobs: Knobs, field: str, value: Any) -> Knobs:  # noqa: ANN401 (each knob has a type of its own)
    return replace(knobs, **{field: value})


def _next_of(ladder: Sequence[float], value: float, direction: int) -> float:
    """Find the next rung above or below a value that may lie between two."""
    if direction > 0:
        return ladder[min(bisect.bisect_right(ladder, value), len(ladder) - 1)]
    return ladder[max(bisect.bisect_left(ladder, value) - 1, 0)]
