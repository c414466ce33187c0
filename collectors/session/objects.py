"""JSON encoding of events and of objects that ticks refer to, checked field by field when decoding.

A session file is untrusted input: every value is type-checked before use.
"""

from __future__ import annotations

from types import NoneType
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from collectors.graph import Graph, Layer, Lun, MountedFilesystem, Path, Port, Tape, TargetPort
from collectors.model import Column, Device, HistogramScale, HostFacts, Kind, Rows, Schema, Topology
from collectors.session.format import (
    MAX_JSON_CONTAINERS,
    MAX_JSON_ITEMS,
    TIME_END_NS,
    DamageError,
    columns_of,
    hints_of,
    records_of,
    typed,
)
from engine.events import Event, EventKind
from engine.strict_json import JsonError, dump_json, load_json_object


def graph_to_json(graph: Graph) -> dict[str, Any]:
    """Encode each list of the graph by columns."""
    return {
        "ports": columns_of(Port, graph.ports),
        "targets": columns_of(TargetPort, graph.targets),
        "luns": columns_of(Lun, graph.luns),
        "paths": columns_of(Path, graph.paths),
        "layers": columns_of(Layer, graph.layers),
        "mounts": columns_of(MountedFilesystem, graph.mounts),
        "notices": list(graph.notices),
        "tapes": columns_of(Tape, graph.tapes),
    }


def graph_from_json(value: object) -> Graph:
    """Undo `graph_to_json`; missing lists are empty.

    Raises:
        DamageError: a part has another type.
    """
    if not isinstance(value, dict):
        raise DamageError("not a graph")
    notices = value.get("notices", [])
    if not isinstance(notices, list) or not all(isinstance(notice, str) for notice in notices):
        raise DamageError("not a graph")
    return Graph(
        ports=tuple(records_of(Port, value.get("ports", _EMPTY[Port]))),
        targets=tuple(records_of(TargetPort, value.get("targets", _EMPTY[TargetPort]))),
        luns=tuple(records_of(Lun, value.get("luns", _EMPTY[Lun]))),
        paths=tuple(records_of(Path, value.get("paths", _EMPTY[Path]))),
        layers=tuple(records_of(Layer, value.get("layers", _EMPTY[Layer]))),
        mounts=tuple(records_of(MountedFilesystem, value.get("mounts", _EMPTY[MountedFilesystem]))),
        notices=tuple(notices),
        tapes=tuple(records_of(Tape, value.get("tapes", _EMPTY[Tape]))),
    )


_EMPTY = {cls: columns_of(cls, ()) for cls in (Port, TargetPort, Lun, Path, Layer, MountedFilesystem, Tape)}


_T = TypeVar("_T")
_MAX_COLUMNS = 1024


class HistogramShape(Struct, frozen=True):
    """Scale and series shared by all histograms of one name."""

    name: str
    scale: HistogramScale
    series: tuple[str, ...]


def dump(value: object) -> bytes:
    """Encode as compact ASCII JSON; bytes of names that are not UTF-8 are kept as escaped surrogates."""
    return dump_json(value, compact=True).encode("ascii")


def load(data: bytes) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        DamageError: the bytes are not one.
    """
    if data.count(b",") > MAX_JSON_ITEMS or data.count(b"[") + data.count(b"{") > MAX_JSON_CONTAINERS:
        raise DamageError("too much in an object")
    try:
        return load_json_object(data, not_finite_is_missing=True)
    except JsonError as error:
        raise DamageError(str(error)) from None


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """Return a schema with the kinds of its columns."""
    return {"name": schema.name, "columns": [[column.id, column.kind] for column in schema.columns]}


def schema_from_json(value: dict[str, Any]) -> Schema:
    """Undo `schema_to_json`; a kind of a later version is read as a gauge, from which nothing is derived."""
    columns = _list(value, "columns")
    if len(columns) > _MAX_COLUMNS:
        raise DamageError("too many columns")
    return Schema(_text(value, "name"), tuple(_column(column) for column in columns))


def _column(value: object) -> Column:
    match value:
        case [str(id_), str(kind)]:
            return Column(id_, Kind(kind) if kind in set(Kind) else Kind.GAUGE)
        case _:
            raise DamageError("not a column")


def shape_to_json(shape: HistogramShape) -> dict[str, Any]:
    """Return a histogram's name, buckets and series."""
    scale = shape.scale
    return {"name": shape.name, "unit_ns": scale.unit_ns, "sub_bits": scale.sub_bits, "series": list(shape.series)}


def shape_from_json(value: dict[str, Any]) -> HistogramShape:
    """Undo `shape_to_json`."""
    unit_ns, sub_bits = value.get("unit_ns"), value.get("sub_bits")
    if type(unit_ns) is not int or type(sub_bits) is not int or not (0 < unit_ns < 1 << 40 and 0 <= sub_bits <= 16):
        raise DamageError("not a histogram scale")
    return HistogramShape(_text(value, "name"), HistogramScale(unit_ns, sub_bits), _texts(value, "series"))


def rows_to_json(rows: Rows, base: Rows | None = None, base_id: int = 0) -> dict[str, Any]:
    """Encode row names, as differences from an earlier set if there is one.

    `runs` lists rows copied from a position of the base, [position, count, ...], with position -1 for new rows.
    """
    positions = (
        {} if base is None else {row: position for position, row in enumerate(zip(base.keys, base.names, strict=True))}
    )
    runs: list[int] = []
    fresh: list[tuple[str, str]] = []
    for row in zip(rows.keys, rows.names, strict=True):
        position = positions.get(row, -1)
        if position < 0:
            fresh.append(row)
        if runs and position == (-1 if runs[-2] < 0 else runs[-2] + runs[-1]):
            runs[-1] += 1
        else:
            runs += (position, 1)
    return {"base": base_id, "runs": runs, "keys": [row[0] for row in fresh], "names": [row[1] for row in fresh]}


def base_of_rows(value: dict[str, Any]) -> int:
    """Return the number of the row set that this one is encoded against; 0 if none."""
    base = value.get("base")
    if type(base) is not int or base < 0:
        raise DamageError("not a row set")
    return base


def rows_from_json(value: dict[str, Any], base: Rows | None) -> Rows:
    """Undo `rows_to_json`."""
    old = [] if base is None else list(zip(base.keys, base.names, strict=True))
    keys, names, runs = _texts(value, "keys"), _texts(value, "names"), _list(value, "runs")
    if len(keys) != len(names) or len(runs) % 2 or not all(type(number) is int for number in runs):
        raise DamageError("not a row set")
    fresh = list(zip(keys, names, strict=True))
    rows: list[tuple[str, str]] = []
    taken = 0
    for position, count in zip(runs[::2], runs[1::2], strict=True):
        part = fresh[taken : taken + count] if position < 0 else old[position : position + count]
        taken += count if position < 0 else 0
        rows += part
        if count < 1 or len(part) != count or len(rows) > len(old) + len(fresh):
            raise DamageError("not a row set")
    return Rows(tuple(row[0] for row in rows), tuple(row[1] for row in rows))


def topology_to_json(topology: Topology) -> dict[str, Any]:
    """Encode host facts by field name and devices by columns, since there may be 19,200 of them."""
    devices = columns_of(Device, topology.devices.values())
    return {"host": _plain(topology.host), "devices": devices, "graph": graph_to_json(topology.graph)}


def topology_from_json(value: dict[str, Any]) -> Topology:
    """Undo `topology_to_json`; unknown fields of later versions are ignored; earlier recordings have no graph."""
    devices = records_of(Device, value.get("devices"))
    graph = graph_from_json(value.get("graph", {}))
    return Topology({device.key: device for device in devices}, _revive(HostFacts, value.get("host")), graph)


def event_to_json(event: Event) -> dict[str, Any]:
    """Return an event by field name."""
    return {**_plain(event), "data": dict(event.data)}


def event_from_json(value: dict[str, Any]) -> Event:
    """Undo `event_to_json`; a kind of a later version reads as a note."""
    kind, data = _text(value, "kind"), value.get("data")
    time_ns, monotonic_ns = value.get("time_ns"), value.get("monotonic_ns")
    if type(time_ns) is not int or type(monotonic_ns) is not int or not isinstance(data, dict):
        raise DamageError("not an event")
    if not (0 <= time_ns < TIME_END_NS and 0 <= monotonic_ns < TIME_END_NS):
        raise DamageError("an event with a time that no clock shows")
    if not all(isinstance(item, str | int | float | NoneType) for item in data.values()):
        raise DamageError("not an event")
    known = EventKind(kind) if kind in set(EventKind) else EventKind.NOTE
    return Event(known, _text(value, "text"), time_ns, monotonic_ns, data)


def _plain(record: Device | HostFacts | Event) -> dict[str, Any]:
    return asdict(record)


def _revive(cls: type[_T], value: object) -> _T:
    if not isinstance(value, dict):
        raise DamageError(f"not a {cls.__name__}")
    hints = hints_of(cls)
    known = {name: typed(hint, value[name]) for name, hint in hints.items() if name in value}
    try:
        return cls(**known)
    except TypeError:
        raise DamageError(f"not a {cls.__name__}") from None


def _list(value: dict[str, Any], name: str) -> list[Any]:
    found = value.get(name)
    if not isinstance(found, list):
        raise DamageError(f"no list of {name}")
    return found


def _texts(value: dict[str, Any], name: str) -> tuple[str, ...]:
    found = _list(value, name)
    if not all(isinstance(item, str) for item in found):
        raise DamageError(f"{name} that are not text")
    return tuple(found)


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    if not isinstance(found, str):
        raise DamageError(f"no {name}")
    return found
