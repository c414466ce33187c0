"""Event numbers of all device mapper devices: one ioctl detects maps with failed or reinstated paths."""

from __future__ import annotations

import fcntl
import os
import struct

from collectors.topology.device_mapper import BUFFER_FULL, CONTROL, HEADER, Number, decoded, header_of

_LIST_DEVICES = 0xC000FD02 | HEADER.size << 16
_NAME_LIST = struct.Struct("=Q I")
"""Head of struct dm_name_list (include/uapi/linux/dm-ioctl.h); the name follows, then aligned to 8 the event number."""
_EVENT = struct.Struct("=I")
_EVENTS_SINCE = (4, 37)
_BUFFER, _LARGEST = 64 * 1024, 16 * 1024 * 1024


class MapEvents:
    """Detects events of maps since the last call: a failed or reinstated path is one (drivers/md/dm-mpath.c)."""

    def __init__(self) -> None:
        self._numbers: dict[Number, int] = {}

    def moved(self) -> bool:
        """Return whether any map had an event, or was added or removed; false if the device mapper cannot be read."""
        found = read_event_numbers()
        if found is None:
            return False
        before, self._numbers = self._numbers, found
        return found != before


def read_event_numbers() -> dict[Number, int] | None:
    """Event number of every device mapper device; None without the rights, and before Linux 4.13."""
    try:
        control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return _list(control)
    except (OSError, struct.error):
        return None
    finally:
        os.close(control)


def _list(control: int) -> dict[Number, int] | None:
    size = _BUFFER
    while size <= _LARGEST:
        buffer = bytearray(size)
        HEADER.pack_into(buffer, 0, *header_of((0, 0), size, 0))
        fcntl.ioctl(control, _LIST_DEVICES, buffer)
        *version, _, start, _, _, flags, _, _, _, _, _ = HEADER.unpack_from(buffer)
        if not flags & BUFFER_FULL:
            return dict(_entries(buffer, start)) if tuple(version[:2]) >= _EVENTS_SINCE else None
        size *= 4
    return None


def _entries(buffer: bytearray, start: int) -> list[tuple[Number, int]]:
    found: list[tuple[Number, int]] = []
    position = start
    while True:
        device, following = _NAME_LIST.unpack_from(buffer, position)
        if not device:
            return found
        name_end = buffer.index(0, position + _NAME_LIST.size) + 1
        aligned = name_end + -(name_end - start) % 8
        (event,) = _EVENT.unpack_from(buffer, aligned)
        found.append((decoded(device), event))
        if not following:
            return found
        position += following
