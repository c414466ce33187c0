"""What this engine takes: its targets, and which knobs they allow."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Sequence

from msgspec import Struct

from engine.aio.plan import stripe_of
from engine.job.distribution import Uniform
from engine.job.knobs import KNOBS
from engine.job.spec import MAX_BLOCK_BYTES, Knobs

MAX_OUTSTANDING = 1024
"""Every outstanding I/O takes a thread of the executor here."""


class AioTarget(Struct, frozen=True):
    """One target by an open descriptor, which the engine duplicates; see engine._native.LoadTarget."""

    fd: int
    name: str
    size_bytes: int
    align_bytes: int
    writable: bool


def own_descriptor(target: AioTarget) -> int:
    """Duplicate a target's descriptor or, where it could write and must not, open the same file for reading only.

    Raises:
        OSError: no descriptor is left, or the file cannot be opened for reading.
    """
    flags = fcntl.fcntl(target.fd, fcntl.F_GETFL)
    if target.writable or flags & os.O_ACCMODE == os.O_RDONLY:
        return os.dup(target.fd)
    return os.open(f"/proc/self/fd/{target.fd}", os.O_RDONLY | os.O_CLOEXEC | flags & os.O_DIRECT)


def check_knobs(knobs: Knobs, targets: Sequence[AioTarget], max_queue_depth: int, stripe_unit_bytes: int) -> None:
    """Refuse knobs that the targets cannot take.

    Raises:
        ValueError: says which knob is out of range.
    """
    _check_depth(knobs, len(targets), max_queue_depth)
    if not isinstance(knobs.distribution, Uniform) or not isinstance(knobs.write_distribution, Uniform | None):
        raise ValueError("the aio engine draws offsets evenly only: use the uring or threads engine")
    active = targets[: knobs.stripe_width]
    for target in active:
        _check_target(knobs, target)
    for knob in KNOBS.values():
        for text in knob.problems(knobs):
            raise ValueError(f"{knob.id} {text}")
    _check_stripe(knobs, active, stripe_unit_bytes)


def _check_depth(knobs: Knobs, targets: int, max_queue_depth: int) -> None:
    depth, width = knobs.queue_depth, knobs.stripe_width
    if not 1 <= depth <= max_queue_depth:
        raise ValueError(f"queue_depth {depth} is not in 1..{max_queue_depth}")
    if not 1 <= width <= targets:
        raise ValueError(f"stripe_width {width} is not in 1..{targets}, the number of targets")
    if depth * width > MAX_OUTSTANDING:
        raise ValueError(
            f"queue_depth {depth} on {width} targets is above the {MAX_OUTSTANDING} outstanding I/Os of the aio "
            "engine: lower one, or use the uring or threads engine"
        )


def _check_target(knobs: Knobs, target: AioTarget) -> None:
    if knobs.read_pct < 100 and not target.writable:
        raise ValueError(f"read_pct below 100 would write to {target.name}, which is not open for writing")
    for block in knobs.block_sizes:
        if knobs.mode.is_direct and block % target.align_bytes:
            raise ValueError(f"block {block} is not a multiple of {target.align_bytes}, the alignment of {target.name}")
        if not 0 < block <= min(target.size_bytes, MAX_BLOCK_BYTES):
            raise ValueError(f"block {block} does not fit {target.name}, which has {target.size_bytes} bytes")


def _check_stripe(knobs: Knobs, active: Sequence[AioTarget], stripe_unit_bytes: int) -> None:
    stripe = stripe_of(knobs, stripe_unit_bytes, [target.size_bytes for target in active])
    if stripe is None:
        return
    for target in active:
        if knobs.mode.is_direct and stripe_unit_bytes % target.align_bytes:
            raise ValueError(
                f"stripe_unit_bytes {stripe_unit_bytes} is not a multiple of the alignment of {target.name}"
            )
    largest = max(knobs.block_sizes)
    if largest > stripe.capacity_bytes:
        raise ValueError(f"block {largest} is larger than the stripe of {stripe.capacity_bytes} bytes")
