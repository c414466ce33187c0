"""Format of a session file, shared by reader and writer.

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

import struct
import zlib
from enum import IntEnum

APPLICATION_ID = 0x4C554E53
"""`LUNS` in the database header, so that file(1) and other programs can identify it."""
VERSION = 1
"""Incremented when older readers could misread a file; not for new tables and columns of samples."""

PART_BYTES = 480
"""Size of the parts of a tick; several fit a page of 4 KiB, since a tick of half a page would waste the other half."""
LARGE_TICK_BYTES = 32 << 10
"""From this size on the waste is negligible, and a tick stays in one part."""
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
