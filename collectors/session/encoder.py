"""Encoding of samples: the base tick of each, its bytes, and objects that are written once per segment."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from msgspec import Struct

from collectors.model import Histograms, Rows, Sample, Schema, Table, Topology
from collectors.session import objects
from collectors.session.format import KEYFRAME_TICKS, SEGMENT_TICKS, ObjectKind
from collectors.session.objects import HistogramShape
from collectors.session.record import Record, RecordSection, TickState
from engine import _native

_LONGEST_CHAIN = 16
"""Longest chain of delta-encoded row sets before a full one."""

StoredObject = tuple[int, ObjectKind, bytes]
"""Number, kind and bytes, before sealing."""


class ObjectWriter:
    """Assigns numbers to objects, and queues objects to be written with the next tick."""

    def __init__(self) -> None:
        self._next_id = 1
        self._pending: list[StoredObject] = []
        self._by_value: dict[Hashable, int] = {}
        self._rows: dict[str, _StoredRows] = {}
        self._topology: tuple[Topology, bytes] | None = None
        self._topology_id = 0

    def start_segment(self) -> None:
        """Forget written objects: a segment contains all objects it refers to."""
        self._by_value.clear()
        self._rows.clear()
        self._topology_id = 0

    def take_pending(self) -> list[StoredObject]:
        """Return and clear the objects to be written, in the order of their numbers."""
        pending, self._pending = self._pending, []
        return pending

    def put(self, kind: ObjectKind, data: bytes) -> int:
        """Queue a new object; return its number."""
        number = self._next_id
        self._next_id += 1
        self._pending.append((number, kind, data))
        return number

    def schema(self, schema: Schema) -> int:
        """Return the number of a schema."""
        known = self._by_value.get(schema)
        if known is None:
            known = self._put_json(ObjectKind.SCHEMA, objects.schema_to_json(schema))
            self._by_value[schema] = known
        return known

    def histogram_shape(self, name: str, histograms: Histograms) -> int:
        """Return the number of the shape shared by all histograms of a name."""
        shape = HistogramShape(name, histograms.scale, histograms.series)
        known = self._by_value.get(shape)
        if known is None:
            known = self._put_json(ObjectKind.HISTOGRAM_SHAPE, objects.shape_to_json(shape))
            self._by_value[shape] = known
        return known

    def rows(self, name: str, rows: Rows) -> int:
        """Return the number of the row set of a table; sets are delta-encoded, since processes start and end."""
        last = self._rows.get(name)
        if last is not None and last.same(rows):
            return last.number
        for other in self._rows.values():
            if other.rows is rows:
                return other.number
        if last is None or last.chain >= _LONGEST_CHAIN:
            stored = _StoredRows(rows, self._put_json(ObjectKind.ROWS, objects.rows_to_json(rows)), 0)
        else:
            encoded = objects.rows_to_json(rows, last.rows, last.number)
            stored = _StoredRows(rows, self._put_json(ObjectKind.ROWS, encoded), last.chain + 1)
        self._rows[name] = stored
        return stored.number

    def topology(self, topology: Topology) -> int:
        """Return the number of a topology."""
        if self._topology is None or self._topology[0] is not topology:
            data = _native.compress(objects.dump(objects.topology_to_json(topology)))
            if self._topology is None or self._topology[1] != data:
                self._topology_id = 0
            self._topology = (topology, data)
        if not self._topology_id:
            self._topology_id = self.put(ObjectKind.TOPOLOGY, self._topology[1])
        return self._topology_id

    def _put_json(self, kind: ObjectKind, value: dict[str, object]) -> int:
        return self.put(kind, _native.compress(objects.dump(value)))


class _StoredRows:
    def __init__(self, rows: Rows, number: int, chain: int) -> None:
        self.rows = rows
        self.number = number
        self.chain = chain

    def same(self, rows: Rows) -> bool:
        """Whether the rows are equal."""
        if self.rows is not rows:
            if self.rows.keys != rows.keys or self.rows.names != rows.names:
                return False
            self.rows = rows
        return True


class EncodedTick(Struct, frozen=True):
    """One row of the ticks table of a session file."""

    tick: int
    base: int | None
    """The tick it is encoded against: itself for a full one, None for the previous one."""
    data: bytes


class Encoder:
    """Encodes samples to ticks in order; objects they refer to are queued in the object writer."""

    def __init__(self, objects: ObjectWriter) -> None:
        self._objects = objects
        self._tick = 0
        self._state = TickState()
        self._segment = TickState()

    def encode(self, sample: Sample, *, gap: bool) -> EncodedTick:
        """Return the next tick.

        Raises:
            ValueError: a table exceeds the limits of the format.
        """
        tick, base = self._tick, self._base()
        record = Record(
            gap,
            max(0, sample.late_ns),
            max(0, sample.cost_ns),
            self._objects.topology(sample.topology),
            tuple(self._table(table) for table in sample.tables.values()),
            tuple(self._histograms(name, histograms) for name, histograms in sample.histograms.items()),
        )
        self._state.keep(table.schema.name for table in sample.tables.values())
        if base is not None:
            self._state.settle()
        if base == tick:
            self._segment = self._state.copy()
        self._tick += 1
        return EncodedTick(tick, base, record.to_bytes())

    def _base(self) -> int | None:
        """Return the base of the next tick, and set the state to it."""
        tick = self._tick
        if tick % SEGMENT_TICKS == 0:
            self._objects.start_segment()
            self._state = TickState()
            return tick
        if tick % KEYFRAME_TICKS == 0:
            self._state = self._segment.copy()
            return tick - tick % SEGMENT_TICKS
        return None

    def _table(self, table: Table) -> RecordSection:
        schema, rows = table.schema, table.rows
        data = self._state.codec(schema, rows).encode(np.ascontiguousarray(table.values))
        return RecordSection(self._objects.schema(schema), self._objects.rows(schema.name, rows), data)

    def _histograms(self, name: str, histograms: Histograms) -> RecordSection:
        cells = _native.encode_cells(
            np.ascontiguousarray(histograms.row),
            np.ascontiguousarray(histograms.series_index),
            np.ascontiguousarray(histograms.bucket),
            np.ascontiguousarray(histograms.count),
        )
        shape_id = self._objects.histogram_shape(name, histograms)
        rows_id = self._objects.rows(f"histogram {name}", histograms.rows)
        return RecordSection(shape_id, rows_id, cells)
