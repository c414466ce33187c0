"""Decoding of ticks into samples, through those they are delta-encoded against, and of the objects they refer to."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from collectors.model import Histograms, Rows, Sample, Schema, Table, Topology
from collectors.session import objects
from collectors.session.checked_rows import StoredTick
from collectors.session.format import MAX_JSON_BYTES, MAX_TICK_CELLS, DamageError, ObjectKind, unseal
from collectors.session.objects import HistogramShape
from collectors.session.record import Record, RecordSection, TickState
from engine import _native
from engine.events import Event

_KEPT = 64
_KEPT_BYTES = MAX_JSON_BYTES
_LONGEST_OBJECT_CHAIN = 64
_MOST_EXPANSION = 512
"""Largest compression ratio: JSON of many similar devices shrinks to a 100th, a decompression bomb to a 10,000th."""

_T = TypeVar("_T")


class ObjectStore(Protocol):
    """Where objects are read: the database of a session file, or what was received of a host."""

    def select(self, query: str, *values: int) -> list[tuple[Any, ...]]:
        """All rows of a query."""


class StoredTicks(Protocol):
    """Where ticks are read."""

    def get(self, tick: int) -> StoredTick:
        """Return a tick.

        Raises:
            DamageError: it is not there, or damaged.
        """


class ObjectReader:
    """Schemas, row sets and topologies of one open file."""

    def __init__(self, database: ObjectStore) -> None:
        self._database = database
        self._kept: OrderedDict[int, Any] = OrderedDict()
        self._bytes: dict[int, int] = {}
        """JSON length of each cached object."""
        self._latest_topology: Topology | None = None

    def schema(self, number: int) -> Schema:
        """Return a schema.

        Raises:
            DamageError: it is missing or damaged; so for all other methods here.
        """
        return self._get(number, ObjectKind.SCHEMA, objects.schema_from_json, Schema)

    def histogram_shape(self, number: int) -> HistogramShape:
        """Return the scale and series shared by all histograms of a name."""
        return self._get(number, ObjectKind.HISTOGRAM_SHAPE, objects.shape_from_json, HistogramShape)

    def rows(self, number: int) -> Rows:
        """Return a row set, decoded through the sets it is encoded against."""
        waiting: list[tuple[int, dict[str, Any]]] = []
        rows: Rows | None = None
        while number:
            found = self._kept.get(number)
            if isinstance(found, Rows):
                self._kept.move_to_end(number)
                rows = found
                break
            value = self._json(number, ObjectKind.ROWS)
            waiting.append((number, value))
            if not objects.base_of_rows(value) < number or len(waiting) > _LONGEST_OBJECT_CHAIN:
                raise DamageError("a row set encoded against a later one")
            number = objects.base_of_rows(value)
        for number, value in reversed(waiting):
            rows = self._keep(number, self._one_object(objects.rows_from_json(value, rows)))
        if rows is None:
            raise DamageError("no row set")
        return rows

    def topology(self, number: int) -> Topology:
        """Return a topology."""
        return self._get(number, ObjectKind.TOPOLOGY, self._topology_from_json, Topology)

    def header(self) -> dict[str, Any]:
        """Return the header, empty where it cannot be read."""
        try:
            query = "SELECT id FROM objects WHERE kind = ? ORDER BY id LIMIT 1"
            [(number,)] = self._database.select(query, ObjectKind.HEADER)
            return objects.load(self._data(number, ObjectKind.HEADER))
        except ValueError:
            return {}

    def ended(self) -> bool:
        """Whether the recording was closed."""
        try:
            return self._database.select("SELECT kind FROM objects ORDER BY id DESC LIMIT 1") == [(ObjectKind.END,)]
        except DamageError:
            return False

    def _get(self, number: int, kind: ObjectKind, parse: Callable[[dict[str, Any]], _T], type_: type[_T]) -> _T:
        found = self._kept.get(number)
        if isinstance(found, type_):
            self._kept.move_to_end(number)
            return found
        return self._keep(number, parse(self._json(number, kind)))

    def _keep(self, number: int, value: _T) -> _T:
        self._kept[number] = value
        self._bytes = {kept: length for kept, length in self._bytes.items() if kept in self._kept}
        while len(self._kept) > _KEPT or (len(self._kept) > 1 and sum(self._bytes.values()) > _KEPT_BYTES):
            self._bytes.pop(self._kept.popitem(last=False)[0], None)
        return value

    def _one_object(self, rows: Rows) -> Rows:
        for kept in self._kept.values():
            if isinstance(kept, Rows) and kept.keys == rows.keys and kept.names == rows.names:
                return kept
        return rows

    def _topology_from_json(self, value: dict[str, Any]) -> Topology:
        """Return the same object for equal topologies: each segment stores it again, and users compare by `is`."""
        topology, latest = objects.topology_from_json(value), self._latest_topology
        if latest is None or not topology.same_as(latest):
            self._latest_topology = topology
            return topology
        return latest

    def _json(self, number: int, kind: ObjectKind) -> dict[str, Any]:
        packed = self._data(number, kind)
        try:
            raw = _native.decompress(packed, min(MAX_JSON_BYTES, _MOST_EXPANSION * len(packed)))
        except ValueError as error:
            raise DamageError(str(error)) from None
        self._bytes[number] = len(raw)
        return objects.load(raw)

    def _data(self, number: int, kind: ObjectKind) -> bytes:
        match self._database.select("SELECT kind, data FROM objects WHERE id = ?", number):
            case [(int(found), bytes(sealed))] if found == kind:
                return unseal(sealed, number, kind)
            case _:
                raise DamageError(f"no {kind.name.lower()} {number}")


_STATES_KEPT = 4
_LONGEST_CHAIN = 4096


class UnreadableError(DamageError):
    """A tick cannot be decoded; `culprit` is the damaged one it depends on."""

    def __init__(self, culprit: int, reason: str) -> None:
        super().__init__(reason)
        self.culprit = culprit


class Moment(Struct, frozen=True, eq=False):
    """A decoded sample."""

    sample: Sample
    gap: bool
    """Whether the sample before it in the file is not its predecessor in time."""


_Tables = dict[str, tuple[Schema, Rows, _native.TableCodec]]


class Decoder:
    """Decodes any tick: the next one costs one difference, any other at most KEYFRAME_TICKS of them."""

    def __init__(
        self, ticks: StoredTicks, objects: ObjectReader, events_at: Callable[[int], tuple[Event, ...]]
    ) -> None:
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
