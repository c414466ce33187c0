"""Which I/O comes next: its address over the stripes, its order, and when an fsync is due."""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from engine.aio.tally import READ, WRITE
from engine.job.choices import Flush
from engine.job.spec import BlockShare, Knobs


class Fsyncs:
    """Counts the writes of each target; its owner locks."""

    def __init__(self, targets: int) -> None:
        self._writes = [0] * targets
        self._owed = [0] * targets

    def wrote(self, target: int, every: int | None) -> None:
        """Count one write that completed without an error."""
        if every is None:
            return
        self._writes[target] += 1
        if self._writes[target] % every == 0:
            self._owed[target] += 1

    def take(self, target: int, every: int | None) -> bool:
        """Take one fsync to be issued, if one is due."""
        if every is None or not self._owed[target]:
            return False
        self._owed[target] -= 1
        return True


class Extent(Struct, frozen=True):
    """A run of bytes on one target."""

    target: int
    offset: int
    length: int


class Stripe(Struct, frozen=True):
    """`rows` rows of one unit on each of `width` targets."""

    width: int
    unit_bytes: int
    rows: int

    @property
    def capacity_bytes(self) -> int:
        """Bytes of the address space."""
        return self.width * self.unit_bytes * self.rows

    def extents(self, start: int, length: int) -> Iterator[Extent]:
        """Cut a logical range: one extent per target touched, as its units there follow each other."""
        first, last = start // self.unit_bytes, (start + length - 1) // self.unit_bytes
        for unit in range(first, min(last, first + self.width - 1) + 1):
            final = unit + (last - unit) // self.width * self.width
            begin = unit // self.width * self.unit_bytes + (start % self.unit_bytes if unit == first else 0)
            tail = (start + length - 1) % self.unit_bytes + 1 if final == last else self.unit_bytes
            end = final // self.width * self.unit_bytes + tail
            yield Extent(unit % self.width, begin, end - begin)


def stripe_of(knobs: Knobs, unit_bytes: int, sizes: Sequence[int]) -> Stripe | None:
    """Lay out the stripe for these knobs; None where every block is within one unit of one target."""
    if knobs.stripe_width == 1 or all(unit_bytes % size == 0 for size in knobs.block_sizes):
        return None
    return Stripe(knobs.stripe_width, unit_bytes, min(sizes[: knobs.stripe_width]) // unit_bytes)


_LOOKAHEAD = 16


class PlannedIo(Struct, frozen=True):
    """One I/O on one target."""

    direction: int
    offset: int
    length: int
    sequence: int = 0
    """Number in this run, written into the data."""
    is_data_only: bool = False
    """Of an fsync: whether it is an fdatasync."""

    @property
    def is_fsync(self) -> bool:
        """Whether this is an fsync, which is a write of no bytes."""
        return self.length == 0


FLUSHES = {Flush.FSYNC: PlannedIo(WRITE, 0, 0), Flush.FDATASYNC: PlannedIo(WRITE, 0, 0, is_data_only=True)}


class Stream:
    """Offsets in one address space: random or one after the other, the same for the same seed."""

    def __init__(self, seed: str, *, sequential: bool) -> None:
        self._sequential = sequential
        self._cursor = 0
        self._random = random.Random(seed)  # noqa: S311 (a load needs repeatable numbers, not secret ones)

    def draw(self, knobs: Knobs, space_bytes: int) -> PlannedIo:
        """Draw direction, size and offset."""
        direction = READ if self._random.random() * 100 < knobs.read_pct else WRITE
        length = self._length(knobs.blocks if direction == READ else knobs.drawn_write_blocks)
        return PlannedIo(direction, self._offset(length, space_bytes), length)

    def _length(self, blocks: tuple[BlockShare, ...]) -> int:
        if len(blocks) == 1:
            return blocks[0].block_bytes
        bounds = itertools.accumulate(share.percent for share in blocks)
        drawn = self._random.random() * 100
        return next(
            (share.block_bytes for share, bound in zip(blocks, bounds, strict=True) if drawn < bound),
            blocks[-1].block_bytes,
        )

    def _offset(self, length: int, space_bytes: int) -> int:
        if not self._sequential:
            return self._random.randrange(space_bytes // length) * length
        offset = self._cursor if self._cursor + length <= space_bytes else 0
        self._cursor = offset + length
        return offset


class Plan:
    """I/Os of all targets; a logical I/O that touches several is cut into parts, which wait here for their turn.

    Logical addresses are drawn whichever targets have free slots, so a target that lags holds the others back once many
    of its parts wait, as a stripe does.
    """

    def __init__(self, sizes: Sequence[int], stripe_unit_bytes: int, seed: int, *, sequential: bool) -> None:
        self._sizes = sizes
        self._unit_bytes = stripe_unit_bytes
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

    def blocked(self, knobs: Knobs, failing: Callable[[int], bool]) -> bool:
        """Whether a target that answers has so many parts waiting that no more are cut."""
        most = max(knobs.queue_depth, _LOOKAHEAD)
        return any(len(parts) >= most and not failing(target) for target, parts in enumerate(self._waiting))

    def draw(self, target: int, knobs: Knobs, failing: Callable[[int], bool]) -> None:
        """Draw one logical I/O; a failing target gets one part at a time, for the probe."""
        if self._stripe is None:
            io = self._streams[target].draw(knobs, self._sizes[target])
            self._put(target, io.direction, io.offset, io.length)
            return
        io = self._striped.draw(knobs, self._stripe.capacity_bytes)
        for part in self._stripe.extents(io.offset, io.length):
            if not self._waiting[part.target] or not failing(part.target):
                self._put(part.target, io.direction, part.offset, part.length)

    def _put(self, target: int, direction: int, offset: int, length: int) -> None:
        self._waiting[target].append(PlannedIo(direction, offset, length, next(self._sequence)))
