"""What this engine takes: its targets, and which knobs they allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.job import MAX_BLOCK_BYTES, Knobs
from engine.sizes import MIX_TOLERANCE_PERCENT

MAX_OUTSTANDING = 1024
"""Every outstanding I/O takes a thread of the executor here."""


@dataclass(frozen=True, slots=True)
class AioTarget:
    """One target by an open descriptor, which the engine duplicates; see engine._native.LoadTarget."""

    fd: int
    name: str
    size_bytes: int
    align_bytes: int
    writable: bool


def check_knobs(knobs: Knobs, targets: Sequence[AioTarget], max_queue_depth: int) -> None:
    """Refuse knobs that the targets cannot take.

    Raises:
        ValueError: says which knob is out of range.
    """
    if not 1 <= knobs.queue_depth <= max_queue_depth:
        raise ValueError(f"queue depth {knobs.queue_depth} is outside 1 to {max_queue_depth}")
    if not 1 <= knobs.stripe_width <= len(targets):
        raise ValueError(f"stripe width {knobs.stripe_width} is outside 1 to {len(targets)}, the number of targets")
    if knobs.queue_depth * knobs.stripe_width > MAX_OUTSTANDING:
        raise ValueError(
            f"queue depth {knobs.queue_depth} on {knobs.stripe_width} targets is above the {MAX_OUTSTANDING} "
            "outstanding I/Os of the aio engine: lower one, or use the uring or threads engine"
        )
    if not 0 <= knobs.read_pct <= 100:
        raise ValueError(f"read share {knobs.read_pct} is outside 0 to 100 %")
    if knobs.rate_iops is not None and not knobs.rate_iops > 0:
        raise ValueError(f"rate {knobs.rate_iops} is not above 0")
    if not knobs.blocks or abs(sum(share.percent for share in knobs.blocks) - 100) > MIX_TOLERANCE_PERCENT:
        raise ValueError("the shares of the block sizes do not add up to 100 %")
    for target in targets[: knobs.stripe_width]:
        _check_target(knobs, target)


def _check_target(knobs: Knobs, target: AioTarget) -> None:
    if knobs.read_pct < 100 and not target.writable:
        raise ValueError(f"{target.name} is not open for writing")
    for share in knobs.blocks:
        if not 0 < share.block_bytes <= min(target.size_bytes, MAX_BLOCK_BYTES):
            raise ValueError(f"block size {share.block_bytes} does not fit {target.name} of {target.size_bytes} bytes")
        if share.block_bytes % target.align_bytes:
            raise ValueError(
                f"block size {share.block_bytes} is not a multiple of the {target.align_bytes} bytes "
                f"to which {target.name} must be aligned"
            )
