"""Decoding of ticks into samples, through those they are delta-encoded against, and of the objects they refer to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from collectors.model import Histograms, Rows, Sample, Schema, Table
from collectors.session.format import MAX_TICK_CELLS, DamageError
from collectors.session.object_reader import ObjectReader
from collectors.session.record import Record, RecordSection, TickState
from collectors.session.rows import StoredTick, TickTable
from engine import _native
from engine.events import Event

_STATES_KEPT = 4
_LONGEST_CHAIN = 4096


class UnreadableError(DamageError):
    """A tick cannot be decoded; `culprit` is the damaged one it depends on."""

    def __init__(self, culprit: int, reason: str) -> None:
        super().__init__(reason)
        self.culprit = culprit


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A decoded sample."""

    sample: Sample
    gap: bool
    """Whether the sample before it in the file is not its predecessor in time."""


_Tables = dict[str, tuple[Schema, Rows, _native.TableCodec]]


class Decoder:
    """Decodes any tick: the next one costs one difference, any other at most KEYFRAME_TICKS of them."""

    def __init__(self, ticks: TickTable, objects: ObjectReader, events_at: Callable[[int], tuple[Event, ...]]) -> None:
        self._ticks = ticks
        self._objects = objects
        self._events_at = events_at
        self._cursor: tuple[int, TickState] | None = None
        self._starts: OrderedDict[int, TickState] = OrderedDict()

    def moment(self, tick: int) -> Moment:
        """Return the sample of a tick.

        Raises:
            UnreadableError: it or a tick it depends on is damaged.
        """
        chain, state = self._chain(tick)
        self._cursor = None
        for stored in reversed(chain):
            try:
                record = Record.from_bytes(stored.data)
                tables = self._advance(state, stored, record)
                moment = self._build(stored, record, tables) if stored.tick == tick else None
            except ValueError as error:
                raise UnreadableError(stored.tick, str(error)) from None
        assert moment is not None, "a chain ends with the tick that was asked for"
        self._cursor = (tick, state)
        return moment

    def _chain(self, tick: int) -> tuple[list[StoredTick], TickState]:
        """Return the ticks to decode, last first, and the state to start from."""
        chain: list[StoredTick] = []
        at = tick
        while True:
            try:
                stored = self._ticks.get(at)
            except DamageError as error:
                raise UnreadableError(at, str(error)) from None
            chain.append(stored)
            if stored.base == at:
                return chain, TickState()
            if not 0 <= stored.base < at or len(chain) > _LONGEST_CHAIN:
                raise UnreadableError(at, "encoded against an unreadable tick")
            at = stored.base
            if self._cursor is not None and self._cursor[0] == at:
                return chain, self._cursor[1]
            if at in self._starts:
                return chain, self._starts[at].copy()

    def _remember(self, tick: int, state: TickState) -> None:
        self._starts[tick] = state.copy()
        self._starts.move_to_end(tick)
        while len(self._starts) > _STATES_KEPT or (len(self._starts) > 1 and self._cells() > MAX_TICK_CELLS):
            self._starts.popitem(last=False)

    def _cells(self) -> int:
        return sum(state.cells for state in self._starts.values())

    def _advance(self, state: TickState, stored: StoredTick, record: Record) -> _Tables:
        tables: _Tables = {}
        cells = 0
        for section in record.tables:
            schema, rows = self._objects.schema(section.shape_id), self._objects.rows(section.rows_id)
            cells += len(rows) * len(schema.columns)
            if cells > MAX_TICK_CELLS:
                raise DamageError("tables too large for any host")
            codec = state.codec(schema, rows)
            codec.apply(section.data)
            tables[schema.name] = (schema, rows, codec)
        state.keep(tables)
        if stored.base != stored.tick - 1:
            state.settle()
            self._remember(stored.tick, state)
        return tables

    def _build(self, stored: StoredTick, record: Record, tables: _Tables) -> Moment:
        sample = Sample(
            time_ns=stored.time_ns,
            monotonic_ns=stored.monotonic_ns,
            topology=self._objects.topology(record.topology_id),
            tables={name: Table(schema, rows, codec.values()) for name, (schema, rows, codec) in tables.items()},
            histograms=dict(self._histograms(section) for section in record.histograms),
            events=self._events_at(stored.tick),
            late_ns=record.late_ns,
            cost_ns=record.cost_ns,
        )
        return Moment(sample, record.gap)

    def _histograms(self, section: RecordSection) -> tuple[str, Histograms]:
        shape, rows = self._objects.histogram_shape(section.shape_id), self._objects.rows(section.rows_id)
        row, series, bucket, count = _native.decode_cells(section.data)
        if len(row) and (int(row.max()) >= len(rows) or int(series.max()) >= len(shape.series)):
            raise DamageError("a histogram of a row that is not there")
        return shape.name, Histograms(shape.scale, rows, shape.series, row, series, bucket, count)
