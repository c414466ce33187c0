"""Status and tables of maps by the ioctls of the device mapper. Needs root; read-only."""

from __future__ import annotations

import fcntl
import struct

from msgspec import Struct

Number = tuple[int, int]

CONTROL = "/dev/mapper/control"

HEADER = struct.Struct("=3I I I I i I I I Q 128s 129s 7x")
"""struct dm_ioctl (include/uapi/linux/dm-ioctl.h)."""
TARGET = struct.Struct("=Q Q i I 16s")
"""struct dm_target_spec."""
_TABLE_STATUS = 0xC000FD0C | HEADER.size << 16
READ_ONLY = 1 << 0
SUSPENDED = 1 << 1
_STATUS_TABLE = 1 << 4
"""Return the table instead of the status."""
INACTIVE_PRESENT = 1 << 6
"""A table is loaded that the next resume makes the active one."""
BUFFER_FULL = 1 << 8
NO_FLUSH = 1 << 11
"""Do not flush the target before it answers."""
_QUERY_INACTIVE = 1 << 12
VERSION = (4, 0, 0)
_BUFFER = 16 * 1024
_LARGEST = 1024 * 1024


class MapAnswer(Struct, frozen=True):
    """What the device mapper says of one map."""

    flags: int
    targets: int
    start: int
    sectors: int
    """Extent of the first target."""
    kind: str
    """Type of the first target; empty without any."""
    parameters: str
    """Parameters as dmsetup prints them, with the space that the kernel writes after the last word."""


def first_target(control: int, number: Number, *, table: bool) -> tuple[str, str] | None:
    """Type and parameters of the first target of a map, as `dmsetup table` or `dmsetup status` print them.

    None if it has none or has vanished. `control` is the opened CONTROL.
    """
    try:
        answer = query_map(control, number, table=table)
    except OSError:
        return None
    return (answer.kind, answer.parameters) if answer is not None and answer.targets else None


def query_map(control: int, number: Number, *, table: bool, inactive: bool = False) -> MapAnswer | None:
    """Read the table or the status of a map, of its loaded table with `inactive`; None if it is too long.

    Raises:
        OSError: the map has vanished.
    """
    size, flags = _BUFFER, NO_FLUSH | (_STATUS_TABLE if table else 0) | (_QUERY_INACTIVE if inactive else 0)
    while size <= _LARGEST:
        buffer = bytearray(size)
        HEADER.pack_into(buffer, 0, *header_of(number, size, flags))
        fcntl.ioctl(control, _TABLE_STATUS, buffer)
        _, _, _, _, start, targets, _, answered, *_ = HEADER.unpack_from(buffer)
        if not answered & BUFFER_FULL:
            return _answer(buffer, start, answered, targets)
        size *= 4
    return None


def header_of(number: Number, size: int, flags: int, *, targets: int = 0) -> tuple[int | bytes, ...]:
    """Fields of a request's header, in the order of `HEADER`."""
    return (*VERSION, size, HEADER.size, targets, 0, flags, 0, 0, _encoded(number), b"", b"")


def _answer(buffer: bytearray, start: int, flags: int, targets: int) -> MapAnswer:
    if not targets:
        return MapAnswer(flags, 0, 0, 0, "", "")
    first, sectors, _, _, kind = TARGET.unpack_from(buffer, start)
    parameters = buffer[start + TARGET.size :].partition(b"\0")[0]
    words = kind.partition(b"\0")[0].decode("ascii", "replace"), parameters.decode("ascii", "replace")
    return MapAnswer(flags, targets, first, sectors, *words)


def _encoded(number: Number) -> int:
    """Encode a device number for the kernel's interfaces (new_encode_dev, include/linux/kdev_t.h)."""
    major, minor = number
    return (minor & 0xFF) | major << 8 | (minor & ~0xFF) << 12


def decoded(device: int) -> Number:
    """Undo `_encoded` (new_decode_dev)."""
    return (device & 0xFFF00) >> 8, (device & 0xFF) | ((device >> 12) & 0xFFF00)
