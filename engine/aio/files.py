"""The targets of a load: which knobs they take, and the descriptors and memory of I/Os."""

from __future__ import annotations

import fcntl
import mmap
import os
import random
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from engine.aio.next_io import PlannedIo, stripe_of
from engine.job.distribution import Uniform
from engine.job.knobs import KNOBS
from engine.job.spec import MAX_BLOCK_BYTES, Knobs

MAX_OUTSTANDING = 1024
"""Every outstanding I/O takes a thread of the executor here."""
_PAGE, _SECTOR = 4096, 512


class AioTarget(Struct, frozen=True):
    """One target by an open descriptor, which the engine duplicates; see engine._native.LoadTarget."""

    fd: int
    name: str
    size_bytes: int
    align_bytes: int
    writable: bool


def check_knobs(knobs: Knobs, targets: Sequence[AioTarget], max_queue_depth: int, stripe_unit_bytes: int) -> None:
    """Refuse knobs that the targets or this engine cannot take.

    Raises:
        ValueError: says which knob is out of range.
    """
    depth, width, elsewhere = knobs.queue_depth, knobs.stripe_width, "use the uring or threads engine"
    if not 1 <= depth <= max_queue_depth:
        raise ValueError(f"queue_depth {depth} is not in 1..{max_queue_depth}")
    if not 1 <= width <= len(targets):
        raise ValueError(f"stripe_width {width} is not in 1..{len(targets)}, the number of targets")
    if depth * width > MAX_OUTSTANDING:
        most = f"the {MAX_OUTSTANDING} outstanding I/Os of the aio engine"
        raise ValueError(f"queue_depth {depth} on {width} targets is above {most}: lower one, or {elsewhere}")
    if not isinstance(knobs.distribution, Uniform) or not isinstance(knobs.write_distribution, Uniform | None):
        raise ValueError(f"the aio engine draws offsets evenly only: {elsewhere}")
    for target in targets[:width]:
        _check_target(knobs, target, stripe_unit_bytes)
    for knob in KNOBS.values():
        for text in knob.problems(knobs):
            raise ValueError(f"{knob.id} {text}")
    stripe, largest = stripe_of(knobs, stripe_unit_bytes, [each.size_bytes for each in targets]), max(knobs.block_sizes)
    if stripe is not None and largest > stripe.capacity_bytes:
        raise ValueError(f"block {largest} is larger than the stripe of {stripe.capacity_bytes} bytes")


def _check_target(knobs: Knobs, target: AioTarget, unit_bytes: int) -> None:
    if knobs.read_pct < 100 and not target.writable:
        raise ValueError(f"read_pct below 100 would write to {target.name}, which is not open for writing")
    for block in knobs.block_sizes:
        if knobs.mode.is_direct and block % target.align_bytes:
            raise ValueError(f"block {block} is not a multiple of {target.align_bytes}, the alignment of {target.name}")
        if not 0 < block <= min(target.size_bytes, MAX_BLOCK_BYTES):
            raise ValueError(f"block {block} does not fit {target.name}, which has {target.size_bytes} bytes")
    is_cut = stripe_of(knobs, unit_bytes, [target.size_bytes]) is not None
    if is_cut and knobs.mode.is_direct and unit_bytes % target.align_bytes:
        raise ValueError(f"stripe_unit_bytes {unit_bytes} is not a multiple of the alignment of {target.name}")


def own_descriptor(target: AioTarget) -> int:
    """Duplicate a target's descriptor or, where it could write and must not, open the same file for reading only.

    Raises:
        OSError: no descriptor is left, or the file cannot be opened for reading.
    """
    flags = fcntl.fcntl(target.fd, fcntl.F_GETFL)
    if target.writable or flags & os.O_ACCMODE == os.O_RDONLY:
        return os.dup(target.fd)
    return os.open(f"/proc/self/fd/{target.fd}", os.O_RDONLY | os.O_CLOEXEC | flags & os.O_DIRECT)


class Buffer:
    """Page-aligned memory, as direct I/O wants it, full of bytes that neither compress nor repeat."""

    def __init__(self, length: int, seed: str) -> None:
        self._memory = mmap.mmap(-1, -(-length // _PAGE) * _PAGE)
        self._memory[:] = random.Random(seed).randbytes(len(self._memory))  # noqa: S311 (filler, not a secret)
        self._sectors = np.frombuffer(self._memory, "<u8").reshape(-1, _SECTOR // 8)

    def __len__(self) -> int:
        return len(self._memory)

    def view(self, length: int) -> memoryview:
        """Share the first `length` bytes."""
        return memoryview(self._memory)[:length]

    def stamp(self, io: PlannedIo) -> None:
        """Mark every 512 bytes with their offset on the target and a number used once, so that none repeats."""
        self._sectors[:, 0] = np.arange(io.offset, io.offset + len(self), _SECTOR)
        self._sectors[:, 1] = io.sequence
