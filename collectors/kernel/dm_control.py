"""Status and tables of maps by the ioctls of the device mapper. Needs root; read-only."""

from __future__ import annotations

import fcntl
import struct

Number = tuple[int, int]

CONTROL = "/dev/mapper/control"

HEADER = struct.Struct("=3I I I I i I I I Q 128s 129s 7x")
"""struct dm_ioctl (include/uapi/linux/dm-ioctl.h)."""
_TARGET = struct.Struct("=Q Q i I 16s")
"""struct dm_target_spec."""
_TABLE_STATUS = 0xC000FD0C | HEADER.size << 16
_STATUS_TABLE = 1 << 4
"""Return the table instead of the status."""
BUFFER_FULL = 1 << 8
_NO_FLUSH = 1 << 11
"""Do not flush the target before it answers."""
VERSION = (4, 0, 0)
_BUFFER = 16 * 1024
_LARGEST = 1024 * 1024


def first_target(control: int, number: Number, *, table: bool) -> tuple[str, str] | None:
    """Type and parameters of the first target of a map, as `dmsetup table` or `dmsetup status` print them.

    None if it has none or has vanished. `control` is the opened CONTROL.
    """
    size, flags = _BUFFER, _STATUS_TABLE if table else 0
    while size <= _LARGEST:
        buffer = bytearray(size)
        HEADER.pack_into(buffer, 0, *header_of(number, size, flags | _NO_FLUSH))
        try:
            fcntl.ioctl(control, _TABLE_STATUS, buffer)
        except OSError:
            return None
        _, _, _, _, start, targets, _, answered, *_ = HEADER.unpack_from(buffer)
        if not answered & BUFFER_FULL:
            return _target(buffer, start) if targets else None
        size *= 4
    return None


def header_of(number: Number, size: int, flags: int) -> tuple[int | bytes, ...]:
    """Fields of a request's header, in the order of `HEADER`."""
    return (*VERSION, size, HEADER.size, 0, 0, flags, 0, 0, _encoded(number), b"", b"")


def _target(buffer: bytearray, start: int) -> tuple[str, str]:
    *_, kind = _TARGET.unpack_from(buffer, start)
    parameters = buffer[start + _TARGET.size :].partition(b"\0")[0]
    return kind.partition(b"\0")[0].decode("ascii", "replace"), parameters.decode("ascii", "replace")


def _encoded(number: Number) -> int:
    """Encode a device number for the kernel's interfaces (new_encode_dev, include/linux/kdev_t.h)."""
    major, minor = number
    return (minor & 0xFF) | major << 8 | (minor & ~0xFF) << 12


def decoded(device: int) -> Number:
    """Undo `_encoded` (new_decode_dev)."""
    return (device & 0xFFF00) >> 8, (device & 0xFF) | ((device >> 12) & 0xFFF00)
