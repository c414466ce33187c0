"""One step of a knob: which value comes next."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from engine.job.distribution import Permutation, Uniform, Zipf, hot_and_cold
from engine.job.spec import MAX_BLOCK_BYTES, MAX_QUEUE_DEPTH, MAX_THREADS, BlockShare, Knobs, Mode, PathPolicy

QUEUE_DEPTHS = tuple(sorted({1, *(2**n for n in range(1, 13)), *(3 * 2**n for n in range(11))}))
"""1 2 3 4 6 8 12 16 24 32 48 ... 4096: half an octave a step."""
RATES = tuple(mantissa * 10**exponent for exponent in range(1, 7) for mantissa in (1, 2, 5))
THREADS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, MAX_THREADS)
DISTRIBUTIONS = (Uniform(), Zipf(0.9), Zipf(1.2), hot_and_cold(90, 10), hot_and_cold(99, 1), Permutation())
SMALLEST_BLOCK_BYTES = 512
READ_STEP_PCT = 10


@dataclass(frozen=True, slots=True)
class Bench:
    """What a step depends on besides the knobs."""

    targets: int
    iops: float | None = None
    """IOPS of the running load, from which an unlimited rate steps down."""
    copies: int = 1
    """Targets that hold the same data: the width grows by whole columns."""


def _queue_depth(knobs: Knobs, direction: int) -> Knobs:
    return replace(knobs, queue_depth=int(_next_of(QUEUE_DEPTHS, knobs.queue_depth, direction)))


def _queue_depth_factor(knobs: Knobs, direction: int) -> Knobs:
    depth = knobs.queue_depth * 2 if direction > 0 else knobs.queue_depth // 2
    return replace(knobs, queue_depth=min(max(depth, 1), MAX_QUEUE_DEPTH))


def _stripe_width(knobs: Knobs, direction: int, bench: Bench) -> Knobs:
    step = bench.copies
    return replace(knobs, stripe_width=min(max(knobs.stripe_width + direction * step, step), bench.targets))


def _block_size(knobs: Knobs, direction: int) -> Knobs:
    blocks = _scaled(knobs.blocks, direction)
    write_blocks = None if knobs.write_blocks is None else _scaled(knobs.write_blocks, direction)
    sizes = [share.block_bytes for share in (*blocks, *(write_blocks or ()))]
    if min(sizes) < SMALLEST_BLOCK_BYTES or max(sizes) > MAX_BLOCK_BYTES:
        return knobs
    return replace(knobs, blocks=blocks, write_blocks=write_blocks)


def _scaled(blocks: tuple[BlockShare, ...], direction: int) -> tuple[BlockShare, ...]:
    sizes = (share.block_bytes * 2 if direction > 0 else share.block_bytes // 2 for share in blocks)
    return tuple(replace(share, block_bytes=size) for share, size in zip(blocks, sizes, strict=True))


def _read_share(knobs: Knobs, direction: int) -> Knobs:
    steps = tuple(float(percent) for percent in range(0, 101, READ_STEP_PCT))
    return replace(knobs, read_pct=_next_of(steps, knobs.read_pct, direction))


def _rate(knobs: Knobs, direction: int, bench: Bench) -> Knobs:
    if knobs.rate_iops is None:
        if direction > 0:
            return knobs
        top = bench.iops or RATES[-1]
        return replace(knobs, rate_iops=float(_next_of(RATES, top, -1)))
    if direction > 0 and knobs.rate_iops >= RATES[-1]:
        return replace(knobs, rate_iops=None)
    if direction > 0 and bench.iops is not None and bench.iops < 0.9 * knobs.rate_iops:
        return replace(knobs, rate_iops=None)
    return replace(knobs, rate_iops=float(_next_of(RATES, knobs.rate_iops, direction)))


def _policy(knobs: Knobs, direction: int) -> Knobs:
    policies = tuple(PathPolicy)
    place = (policies.index(knobs.policy) + direction) % len(policies)
    return replace(knobs, policy=policies[place])


def _threads(knobs: Knobs, direction: int) -> Knobs:
    return replace(knobs, threads=int(_next_of(THREADS, knobs.threads, direction)))


def _mode(knobs: Knobs, direction: int) -> Knobs:
    modes = tuple(Mode)
    return replace(knobs, mode=modes[(modes.index(knobs.mode) + direction) % len(modes)])


def _distribution(knobs: Knobs, direction: int) -> Knobs:
    """Step through the usual ones; from one that is not among them to their first or last."""
    if knobs.distribution in DISTRIBUTIONS:
        position = DISTRIBUTIONS.index(knobs.distribution) + direction
    else:
        position = 0 if direction > 0 else -1
    return replace(knobs, distribution=DISTRIBUTIONS[position % len(DISTRIBUTIONS)])


def _next_of(ladder: tuple[float, ...], value: float, direction: int) -> float:
    """Find the next rung above or below a value that may stand between two."""
    if direction > 0:
        position = bisect.bisect_right(ladder, value)
        return ladder[min(position, len(ladder) - 1)]
    position = bisect.bisect_left(ladder, value) - 1
    return ladder[max(position, 0)]


Turn = Callable[[Knobs, Bench], Knobs]

TURNS: Mapping[str, Turn] = {
    "queue_depth_up": lambda knobs, _bench: _queue_depth(knobs, 1),
    "queue_depth_down": lambda knobs, _bench: _queue_depth(knobs, -1),
    "queue_depth_double": lambda knobs, _bench: _queue_depth_factor(knobs, 1),
    "queue_depth_halve": lambda knobs, _bench: _queue_depth_factor(knobs, -1),
    "stripe_width_up": lambda knobs, bench: _stripe_width(knobs, 1, bench),
    "stripe_width_down": lambda knobs, bench: _stripe_width(knobs, -1, bench),
    "block_size_up": lambda knobs, _bench: _block_size(knobs, 1),
    "block_size_down": lambda knobs, _bench: _block_size(knobs, -1),
    "read_share_up": lambda knobs, _bench: _read_share(knobs, 1),
    "read_share_down": lambda knobs, _bench: _read_share(knobs, -1),
    "threads_up": lambda knobs, _bench: _threads(knobs, 1),
    "threads_down": lambda knobs, _bench: _threads(knobs, -1),
    "mode_next": lambda knobs, _bench: _mode(knobs, 1),
    "mode_previous": lambda knobs, _bench: _mode(knobs, -1),
    "distribution_next": lambda knobs, _bench: _distribution(knobs, 1),
    "distribution_previous": lambda knobs, _bench: _distribution(knobs, -1),
    "rate_up": lambda knobs, bench: _rate(knobs, 1, bench),
    "rate_down": lambda knobs, bench: _rate(knobs, -1, bench),
    "policy_next": lambda knobs, _bench: _policy(knobs, 1),
    "policy_previous": lambda knobs, _bench: _policy(knobs, -1),
}
"""By the part of the action id after `knob.`."""
