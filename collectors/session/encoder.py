"""Delta encoding of samples: the base tick of each, and its bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collectors.model import Histograms, Sample, Table
from collectors.session.format import KEYFRAME_TICKS, SEGMENT_TICKS
from collectors.session.object_writer import ObjectWriter
from collectors.session.record import Record, RecordSection
from collectors.session.state import TickState
from engine import _native


@dataclass(frozen=True, slots=True)
class EncodedTick:
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
