"""One logical address space over several targets, as RAID 0 lays it out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.job.spec import Knobs


@dataclass(frozen=True, slots=True)
class Extent:
    """A run of bytes on one target."""

    target: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Stripe:
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
