"""Binary encoding of one tick: a short head and the encoded tables and histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from collectors.session.format import DamageError

_MAX_SECTIONS = 256
_GAP = 1


@dataclass(frozen=True, slots=True)
class RecordSection:
    """One encoded table or histogram and the numbers of the objects it refers to."""

    shape_id: int
    rows_id: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Record:
    """One tick as stored, encoded against another tick."""

    gap: bool
    """Whether the sample before it in the file is not its predecessor in time."""
    late_ns: int
    cost_ns: int
    topology_id: int
    """0 where the sample had an empty topology."""
    tables: Sequence[RecordSection]
    histograms: Sequence[RecordSection]

    def to_bytes(self) -> bytes:
        """Encode as numbers in 7-bit groups, low first, and length-prefixed byte strings."""
        out = bytearray([_GAP if self.gap else 0])
        for number in (self.late_ns, self.cost_ns, self.topology_id):
            _put(out, number)
        for sections in (self.tables, self.histograms):
            _put(out, len(sections))
            for section in sections:
                for number in (section.shape_id, section.rows_id, len(section.data)):
                    _put(out, number)
                out += section.data
        return bytes(out)

    @classmethod
    def from_bytes(cls, data: bytes) -> Record:
        """Undo `to_bytes`.

        Raises:
            DamageError: the bytes are not a record.
        """
        cursor = _Cursor(data)
        flags, late_ns, cost_ns, topology_id = (cursor.number() for _ in range(4))
        record = cls(bool(flags & _GAP), late_ns, cost_ns, topology_id, cursor.sections(), cursor.sections())
        if cursor.left:
            raise DamageError("bytes left over in a tick")
        return record


def _put(out: bytearray, number: int) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


class _Cursor:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._position

    def number(self) -> int:
        value = 0
        for shift in range(0, 63, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise DamageError("number too long in a tick")

    def take(self, length: int) -> bytes:
        if length > self.left:
            raise DamageError("a tick ends too early")
        start = self._position
        self._position += length
        return self._data[start : self._position]

    def sections(self) -> tuple[RecordSection, ...]:
        count = self.number()
        if count > _MAX_SECTIONS:
            raise DamageError("too many tables in a tick")
        return tuple(self._section() for _ in range(count))

    def _section(self) -> RecordSection:
        shape_id, rows_id, length = self.number(), self.number(), self.number()
        return RecordSection(shape_id, rows_id, self.take(length))
