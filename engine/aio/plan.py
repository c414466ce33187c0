"""Which I/O comes next on a target."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

from engine.aio.tally import READ, WRITE
from engine.job import Knobs


@dataclass(frozen=True, slots=True)
class PlannedIo:
    """One I/O to issue."""

    direction: int
    offset: int
    length: int


class Plan:
    """The stream of I/Os of one target: random or sequential, the same for the same seed."""

    def __init__(self, size_bytes: int, seed: int, target: int, *, sequential: bool) -> None:
        self._size_bytes = size_bytes
        self._sequential = sequential
        self._cursor = 0
        self._random = random.Random(f"{seed}/{target}")  # noqa: S311 (a load needs repeatable numbers, not secret ones)

    def next(self, knobs: Knobs) -> PlannedIo:
        """Draw direction, size and offset of the next I/O."""
        direction = READ if self._random.random() * 100 < knobs.read_pct else WRITE
        length = self._length(knobs)
        return PlannedIo(direction, self._offset(length), length)

    def _length(self, knobs: Knobs) -> int:
        if len(knobs.blocks) == 1:
            return knobs.blocks[0].block_bytes
        bounds = itertools.accumulate(share.percent for share in knobs.blocks)
        drawn = self._random.random() * 100
        return next(
            (share.block_bytes for share, bound in zip(knobs.blocks, bounds, strict=True) if drawn < bound),
            knobs.blocks[-1].block_bytes,
        )

    def _offset(self, length: int) -> int:
        if not self._sequential:
            return self._random.randrange(self._size_bytes // length) * length
        offset = self._cursor if self._cursor + length <= self._size_bytes else 0
        self._cursor = offset + length
        return offset
