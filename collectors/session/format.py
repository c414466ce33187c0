"""Format of a session file, shared by reader and writer, and records of one struct stored by columns.

One SQLite database in WAL mode while it is written, one plain file after closing:

- `ticks`: one row per sample, numbered from 0 without gaps. `data` (layout in `record`) holds the tables as
  differences from the tick `base`: NULL is the previous tick, the tick itself means a full encoding.
  Every KEYFRAME_TICKS a tick is encoded against the start of its segment, so any tick is at most that many differences
  away; every SEGMENT_TICKS a segment starts with a full tick, so damage never reaches further. `drift_ns` is wall time
  minus monotonic time, less the constant in the header. Of a long tick `data` is the first part.
- `parts`: the rest of long ticks: rows from tick * MAX_PARTS on, as many as `parts` of the tick.
- `objects`: objects that ticks refer to by number: header, schemas, row sets, topologies, the mark of a clean close.
  Stored again in each segment, so that one damaged page cannot make the whole file unreadable.
- `events`: JSON, by tick.

Every `data` starts with a CRC-32 over itself and the numbers of its row: SQLite checks structure, not content.
"""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Iterable
from enum import IntEnum
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from collectors.model import Tier

APPLICATION_ID = 0x4C554E53
"""`LUNS` in the database header, so that file(1) and other programs can identify it."""
VERSION = 1
"""Incremented when older readers could misread a file; not for new tables and columns of samples."""

PART_BYTES = 480
"""Size of the parts of a tick; several fit a page of 4 KiB, since a tick of half a page would waste the other half."""
LARGE_TICK_BYTES = 32 << 10
"""Size from which the waste is negligible, so that a tick stays in one part."""
MAX_PARTS = 256

KEYFRAME_TICKS = 60
SEGMENT_TICKS = 30 * KEYFRAME_TICKS

MAX_BLOB_BYTES = 64 << 20
"""Largest value read from a file: 19,200 busy devices need under 1 MiB."""

MAX_JSON_BYTES = 16 << 20
"""Largest object: the topology of 19,200 paths takes 5 MB."""
MAX_JSON_ITEMS = 1_500_000
MAX_JSON_CONTAINERS = 300_000
"""Largest number of JSON elements, checked before parsing: Python needs twenty times the bytes of `[[],[],...]`."""
MAX_TICK_CELLS = 1 << 21
"""Numbers in all tables of a tick; 19,200 disks with exact figures have a million."""

TIME_END_NS = 1 << 62
"""All times are from 0 up to this, in the year 2116: differences of times, and of those, fit 64 bits."""

TABLES = {
    "ticks": (
        "CREATE TABLE ticks (tick INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL, drift_ns INTEGER NOT NULL, "
        "base INTEGER, "
        "parts INTEGER NOT NULL, data BLOB NOT NULL)"
    ),
    "parts": "CREATE TABLE parts (id INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    "objects": "CREATE TABLE objects (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, data BLOB NOT NULL)",
    "events": "CREATE TABLE events (id INTEGER PRIMARY KEY, tick INTEGER NOT NULL, data BLOB NOT NULL)",
}
"""The exact schema; a file with any other schema is not read."""


class ObjectKind(IntEnum):
    """Kind of an object; unknown kinds are ignored."""

    HEADER = 1
    SCHEMA = 2
    HISTOGRAM_SHAPE = 3
    ROWS = 4
    TOPOLOGY = 5
    END = 6


class DamageError(ValueError):
    """A row of a session file is damaged."""


def seal(data: bytes, *numbers: int) -> bytes:
    """Return data preceded by a checksum over it and the numbers of its row."""
    return struct.pack("<I", _checksum(data, numbers)) + data


def cut(sealed: bytes) -> list[bytes]:
    """Split a tick into its parts, at most one more than MAX_PARTS."""
    step = PART_BYTES if len(sealed) <= LARGE_TICK_BYTES else len(sealed)
    return [sealed[start : start + step] for start in range(0, len(sealed), step)]


def unseal(sealed: bytes, *numbers: int) -> bytes:
    """Undo `seal`.

    Raises:
        DamageError: the checksum does not match.
    """
    data = sealed[4:]
    try:
        (expected,) = struct.unpack_from("<I", sealed)
        actual = _checksum(data, numbers)
    except struct.error:
        raise DamageError("too short or out of range") from None
    if expected != actual:
        raise DamageError("checksum does not match")
    return data


def _checksum(data: bytes, numbers: tuple[int, ...]) -> int:
    return zlib.crc32(data, zlib.crc32(struct.pack(f"<{len(numbers)}q", *numbers)))


_T = TypeVar("_T", bound=Struct)


def columns_of(cls: type[_T], records: Iterable[_T]) -> dict[str, list[Any]]:
    """Convert records of a struct to columns."""
    everyone = tuple(records)
    return {name: [getattr(record, name) for record in everyone] for name in cls.__struct_fields__}


def records_of(cls: type[_T], columns: object) -> list[_T]:
    """Undo `columns_of`; unknown fields of later versions are ignored, missing ones get their default.

    Raises:
        DamageError: a column is missing, too short or of another type.
    """
    if not isinstance(columns, dict):
        raise DamageError(f"no {cls.__name__} columns")
    hints = hints_of(cls)
    count = max((len(values) for values in columns.values() if isinstance(values, list)), default=0)
    defaults = _defaults(cls)
    known = []
    for name, hint in hints.items():
        default = defaults.get(name, NODEFAULT)
        values = columns.get(name, None if default is NODEFAULT else [default] * count)
        known.append(_typed_column(hint, values))
    if any(len(values) != count for values in known):
        raise DamageError(f"{cls.__name__} columns of different length")
    return [cls(*values) for values in zip(*known, strict=True)]


def hints_of(cls: object) -> dict[str, Any]:
    """Types of the fields of a struct."""
    return _hints(cls)


_hints = functools.cache(get_type_hints)
"""Each topology of a recording asks for those of all its structs."""


@functools.cache
def _defaults(cls: type[Struct]) -> dict[str, object]:
    """Defaults of the fields of a struct, NODEFAULT for those without."""
    return {field.name: field.default for field in fields(cls)}


def _typed_column(hint: object, values: object) -> list[Any]:
    if not isinstance(values, list):
        raise DamageError("no such field of the records")
    plain = set(get_args(hint) or (hint,))
    if {type(value) for value in values} <= plain:
        return values
    return [typed(hint, value) for value in values]


def typed(hint: object, value: object) -> Any:  # noqa: ANN401 the hint says what it is
    """Return a value checked against the type of its field; lists become tuples.

    Raises:
        DamageError: it is of another type.
    """
    if type(value) is hint:
        return value
    origin = get_origin(hint)
    if origin is UnionType:
        return None if value is None else typed(get_args(hint)[0], value)
    if origin is tuple and isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if hint is Tier and type(value) is int and value in set(Tier):
        return Tier(value)
    raise DamageError("a field of another type")
