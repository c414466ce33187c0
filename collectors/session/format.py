"""What a session file looks like, in one place for both sides.

One SQLite database in WAL mode while it is written, one plain file once it is closed:

- `ticks`: one row per sample, numbered from 0 without holes. `data` (layout in `record`) holds the tables as
  differences from the tick `base`: from the tick before where it is NULL, from nothing where it is the tick itself.
  Every KEYFRAME_TICKS a tick is told from the start of its chapter, so any tick is at most that many differences away;
  every CHAPTER_TICKS a chapter starts from nothing, so damage never reaches further. `drift_ns` is wall time minus
  monotonic time, less the constant in the header. Of a long tick `data` is the beginning.
- `parts`: the rest of long ticks: as many rows from tick * MAX_PARTS on as `parts` of the tick says.
- `objects`: what ticks refer to by number: header, schemas, row sets, topologies, the mark of a clean close. Stored
  again in each chapter, so that one bad page cannot take the whole file.
- `events`: JSON, by the tick they appear with.

Every `data` starts with a CRC-32 over itself and the numbers of its row: SQLite checks structure, not content.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum

APPLICATION_ID = 0x4C554E53
"""`LUNS` in the header of the database, so that `file` and other programs can tell."""
VERSION = 1
"""Grows when older readers could misread a file; new tables and columns of samples do not need it."""

PART_BYTES = 480
"""Ticks are cut into parts of which several fit a page of 4 KiB: a tick of half a page would waste the other half."""
LARGE_TICK_BYTES = 32 << 10
"""From here on the waste does not count, and a tick stays in one part."""
MAX_PARTS = 256

KEYFRAME_TICKS = 60
SEGMENT_TICKS = 30 * KEYFRAME_TICKS

MAX_BLOB_BYTES = 64 << 20
"""Largest value read from a file: 19,200 busy devices need under 1 MiB."""

MAX_JSON_BYTES = 16 << 20
"""Largest object: the topology of 19,200 paths takes 5 MB."""
MAX_JSON_ITEMS = 1_500_000
MAX_JSON_CONTAINERS = 300_000
"""Python needs twenty times the bytes of `[[],[],...]`: what may be in an object is bounded before it is read."""
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
"""Exactly these; a file with anything else in its schema is not read."""


class ObjectKind(IntEnum):
    """What an object is; kinds this version does not know are left alone."""

    HEADER = 1
    SCHEMA = 2
    HISTOGRAM_SHAPE = 3
    ROWS = 4
    TOPOLOGY = 5
    END = 6


class DamageError(ValueError):
    """A row of a session file is not what was written."""


def seal(data: bytes, *numbers: int) -> bytes:
    """Return data with the checksum over it and the numbers stored beside it."""
    return struct.pack("<I", _checksum(data, numbers)) + data


def cut(sealed: bytes) -> list[bytes]:
    """Cut a tick into its parts, at most one more than MAX_PARTS."""
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
