"""Damage of data that a verified load wrote: what is wrong with a range, in numbers and in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field

from engine.errors import error_name


class DamageKind(StrEnum):
    """What is wrong; the value is the id in documents."""

    FLIPPED = "flipped"
    """A few bits differ from what was written."""
    GARBLED = "garbled"
    """Bytes inside a block differ from what was written."""
    TORN = "torn"
    """Parts of two writes, where one should be."""
    STALE = "stale"
    """An old write, where a later one was acknowledged."""
    LOST = "lost"
    """No data of the load, where a write was acknowledged."""
    MISPLACED = "misplaced"
    """Data that belong somewhere else."""
    UNREADABLE = "unreadable"
    """The target refuses to read it."""


_NUMBERS: Mapping[tuple[str, int], tuple[str, ...]] = {
    ("flipped", 2): ("bits", "first_bit"),
    ("garbled", 2): ("first_byte", "last_byte"),
    ("torn", 1): ("torn_at_byte",),
    ("torn", 2): ("write", "in_flight"),
    ("stale", 2): ("found_write", "write"),
    ("lost", 1): ("write",),
    ("misplaced", 1): ("belongs_at",),
    ("misplaced", 2): ("belongs_at", "belongs_to_target"),
    ("unreadable", 1): ("errno",),
}
"""Names of the numbers of engine._native._DamageRow, by kind and how many there are."""

DamageRow = tuple[str, int, int, Sequence[int]]


class Damage(Struct, frozen=True):
    """One damaged range of a target."""

    kind: DamageKind
    offset: int
    """Offset in bytes, as all others."""
    length: int
    numbers: Mapping[str, int] = field(default_factory=dict)
    """What is known more, by names that depend on the kind; bits and bytes count from `offset`, writes are numbers."""

    @property
    def text(self) -> str:
        """Say in one line what is wrong, without the target's name."""
        return f"{self.kind} at {self.offset} ({self.length} bytes): {self._explanation()}"

    def _explanation(self) -> str:
        positions = {name: self.offset + number for name, number in self.numbers.items() if name.endswith("_byte")}
        return _EXPLANATIONS[self.kind, len(self.numbers)](self).format(**{**self.numbers, **positions})


def _flipped(damage: Damage) -> str:
    byte, bit = divmod(damage.numbers["first_bit"], 8)
    position = f"bit {bit} of byte {damage.offset + byte}"
    return position if damage.numbers["bits"] == 1 else f"{{bits}} bits, the first is {position}"


def _torn(damage: Damage) -> str:
    in_flight = ", which was in flight when the load ended," if damage.numbers["in_flight"] else ""
    return f"write {{write}}{in_flight} did not get here, but elsewhere in its block"


def _misplaced(damage: Damage) -> str:
    return f"holds what belongs at {{belongs_at}} of target {damage.numbers['belongs_to_target'] + 1} of its load"


def _unreadable(damage: Damage) -> str:
    return f"cannot be read: {error_name(damage.numbers['errno'])}"


_EXPLANATIONS: Mapping[tuple[DamageKind, int], Callable[[Damage], str]] = {
    (DamageKind.FLIPPED, 2): _flipped,
    (DamageKind.GARBLED, 2): lambda _: "bytes {first_byte} to {last_byte} are not what was written",
    (DamageKind.TORN, 1): lambda _: "one write ends at byte {torn_at_byte}, and something else follows",
    (DamageKind.TORN, 2): _torn,
    (DamageKind.STALE, 2): lambda _: "holds write {found_write}, but write {write} was acknowledged",
    (DamageKind.LOST, 1): lambda _: "nothing of the load is here, but write {write} was acknowledged",
    (DamageKind.MISPLACED, 1): lambda _: "holds what belongs at {belongs_at}",
    (DamageKind.MISPLACED, 2): _misplaced,
    (DamageKind.UNREADABLE, 1): _unreadable,
}


def damage_of(row: DamageRow) -> Damage:
    """Name the numbers of a row of the native core."""
    kind, offset, length, numbers = row
    names = _NUMBERS[kind, len(numbers)]
    return Damage(DamageKind(kind), offset, length, dict(zip(names, numbers, strict=True)))


def damage_verdict(ranges: int) -> str:
    """Say how many ranges are damaged."""
    if not ranges:
        return "no damage"
    return "1 damaged range" if ranges == 1 else f"{ranges:,} damaged ranges"


def damaged_bytes_by_kind(damage: Iterable[Damage]) -> dict[str, int]:
    """Add up bytes of each kind, in the order of DamageKind; kinds that were not found are left out."""
    sums = dict.fromkeys(DamageKind, 0)
    for one in damage:
        sums[one.kind] += one.length
    return {kind.value: total for kind, total in sums.items() if total}


def damage_document(damage: Damage) -> dict[str, object]:
    """One damaged range, ready for json.dumps."""
    return {
        "kind": damage.kind.value,
        "offset": damage.offset,
        "bytes": damage.length,
        **damage.numbers,
        "text": damage.text,
    }
