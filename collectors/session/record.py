"""Binary encoding of one tick, and the state of its tables, the base of the next one, in encoder and decoder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.model import Rows, Schema
from collectors.session.format import DamageError
from engine._native import TableCodec


class _Held(Struct):
    schema: Schema
    rows: Rows
    codec: TableCodec


class TickState:
    """Values by table; writer and reader apply the same steps to it."""

    def __init__(self) -> None:
        self._tables: dict[str, _Held] = {}

    @property
    def cells(self) -> int:
        """Numbers in all tables."""
        return sum(len(held.rows) * len(held.schema.columns) for held in self._tables.values())

    def copy(self) -> TickState:
        """Return an independent copy."""
        other = TickState()
        other._tables = {name: _Held(held.schema, held.rows, held.codec.copy()) for name, held in self._tables.items()}
        return other

    def codec(self, schema: Schema, rows: Rows) -> TableCodec:
        """Return the codec of a table for these rows, with the values of rows that existed before.

        Raises:
            ValueError: more cells than a table may have.
        """
        held = self._tables.get(schema.name)
        if held is None or held.schema != schema:
            codec = TableCodec(len(rows), len(schema.columns))
        elif held.rows is rows or held.rows.keys == rows.keys:
            codec = held.codec
        else:
            codec = held.codec.rearranged(_sources(held.rows, rows))
        self._tables[schema.name] = _Held(schema, rows, codec)
        return codec

    def keep(self, names: Iterable[str]) -> None:
        """Drop all tables but these."""
        wanted = set(names)
        self._tables = {name: held for name, held in self._tables.items() if name in wanted}

    def settle(self) -> None:
        """Forget the previous tick; both sides call this after a tick that was not encoded against it."""
        for held in self._tables.values():
            held.codec.settle()


def _sources(old: Rows, new: Rows) -> NDArray[np.int64]:
    positions = {key: position for position, key in enumerate(old.keys)}
    return np.fromiter((positions.get(key, -1) for key in new.keys), np.int64, len(new))


_MAX_SECTIONS = 256
_GAP = 1


class RecordSection(Struct, frozen=True):
    """One encoded table or histogram and the numbers of the objects it refers to."""

    shape_id: int
    rows_id: int
    data: bytes


class Record(Struct, frozen=True):
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
