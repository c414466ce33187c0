"""Which I/O comes next: its address, its order, and how it spreads over a stripe."""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from engine.job.spec import BlockShare, Knobs

READ, WRITE = 0, 1
_LOOKAHEAD = 16


class PlannedIo(Struct, frozen=True):
    """One I/O on one target."""

    target: int
    direction: int
    offset: int
    length: int
    sequence: int = 0
    """Number in this run, written into the data."""


class Stripe(Struct, frozen=True):
    """`rows` rows of one unit on each of `width` targets."""

    width: int
    unit_bytes: int
    rows: int

    @property
    def capacity_bytes(self) -> int:
        """Bytes of the address space."""
        return self.width * self.unit_bytes * self.rows

    def extents(self, start: int, length: int) -> Iterator[tuple[int, int, int]]:
        """Cut a range into target, offset and length: one of each target touched, as its units there are neighbours."""
        first, last = start // self.unit_bytes, (start + length - 1) // self.unit_bytes
        for unit in range(first, min(last, first + self.width - 1) + 1):
            final = unit + (last - unit) // self.width * self.width
            begin = unit // self.width * self.unit_bytes + (start % self.unit_bytes if unit == first else 0)
            tail = (start + length - 1) % self.unit_bytes + 1 if final == last else self.unit_bytes
            yield unit % self.width, begin, final // self.width * self.unit_bytes + tail - begin


def stripe_of(knobs: Knobs, unit_bytes: int, sizes: Sequence[int]) -> Stripe | None:
    """Lay out the stripe for these knobs; None where every block is within one unit of one target."""
    if knobs.stripe_width == 1 or all(unit_bytes % size == 0 for size in knobs.block_sizes):
        return None
    return Stripe(knobs.stripe_width, unit_bytes, min(sizes[: knobs.stripe_width]) // unit_bytes)


class Stream:
    """Offsets in one address space: random or one after the other, the same for the same seed."""

    def __init__(self, seed: str, *, sequential: bool) -> None:
        self._sequential = sequential
        self._cursor = 0
        self._random = random.Random(seed)  # noqa: S311 (a load needs repeatable numbers, not secret ones)

    def draw(self, knobs: Knobs, space_bytes: int) -> tuple[int, int, int]:
        """Draw direction, offset and length."""
        direction = READ if self._random.random() * 100 < knobs.read_pct else WRITE
        length = self._length(knobs.blocks if direction == READ else knobs.drawn_write_blocks)
        if not self._sequential:
            return direction, self._random.randrange(space_bytes // length) * length, length
        offset = self._cursor if self._cursor + length <= space_bytes else 0
        self._cursor = offset + length
        return direction, offset, length

    def _length(self, blocks: tuple[BlockShare, ...]) -> int:
        if len(blocks) == 1:
            return blocks[0].block_bytes
        shares = [share.percent for share in blocks]
        return self._random.choices(blocks, shares)[0].block_bytes


class Plan:
    """I/Os of all targets; a logical I/O that touches several is cut into parts, which wait here for their turn.

    Logical addresses are drawn whichever targets have free slots, so a target that lags holds the others back once many
    of its parts wait, as a stripe does. `failing` tells the targets that are only probed, with one part at a time.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        stripe_unit_bytes: int,
        seed: int,
        failing: Callable[[int], bool],
        *,
        sequential: bool,
    ) -> None:
        self._sizes = sizes
        self._unit_bytes = stripe_unit_bytes
        self._failing = failing
        self._streams = [Stream(f"{seed}/{target}", sequential=sequential) for target in range(len(sizes))]
        self._striped = Stream(f"{seed}/stripe", sequential=sequential)
        self._waiting: list[deque[PlannedIo]] = [deque() for _ in sizes]
        self._knobs: Knobs | None = None
        self._stripe: Stripe | None = None
        self._sequence = itertools.count(1)

    def enter(self, knobs: Knobs) -> None:
        """Take the knobs in force; parts that were cut for others are dropped."""
        if knobs is not self._knobs:
            self._knobs = knobs
            self._stripe = stripe_of(knobs, self._unit_bytes, self._sizes)
            for parts in self._waiting:
                parts.clear()

    def take(self, target: int) -> PlannedIo | None:
        """Return the next part for a target; None if none waits."""
        return self._waiting[target].popleft() if self._waiting[target] else None

    def blocked(self, knobs: Knobs) -> bool:
        """Whether a target that answers has so many parts waiting that no more are cut."""
        most = max(knobs.queue_depth, _LOOKAHEAD)
        return any(len(parts) >= most and not self._failing(target) for target, parts in enumerate(self._waiting))

    def draw(self, target: int, knobs: Knobs) -> None:
        """Draw one logical I/O; without a stripe it is the target's own."""
        if self._stripe is None:
            direction, *place = self._streams[target].draw(knobs, self._sizes[target])
            extents = [(target, *place)]
        else:
            direction, *place = self._striped.draw(knobs, self._stripe.capacity_bytes)
            extents = [*self._stripe.extents(*place)]
        for part, offset, length in extents:
            if not self._waiting[part] or not self._failing(part):
                self._waiting[part].append(PlannedIo(part, direction, offset, length, next(self._sequence)))
