"""Objects of a session file by number: read when first needed, checked, and cached; equal ones are one object."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from collectors.model import Rows, Schema, Topology
from collectors.session import objects
from collectors.session.database import Database
from collectors.session.format import MAX_JSON_BYTES, DamageError, ObjectKind, unseal
from collectors.session.objects import HistogramShape
from engine import _native

_KEPT = 64
_KEPT_BYTES = MAX_JSON_BYTES
_LONGEST_CHAIN = 64
_MOST_EXPANSION = 512
"""Largest compression ratio: JSON of many similar devices shrinks to a 100th, a decompression bomb to a 10,000th."""

_T = TypeVar("_T")


class ObjectReader:
    """Schemas, row sets and topologies of one open file."""

    def __init__(self, database: Database) -> None:
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
            if not objects.base_of_rows(value) < number or len(waiting) > _LONGEST_CHAIN:
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
