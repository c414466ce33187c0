"""The only module that changes maps of the device mapper: messages, tables that are loaded, and resuming with them.

include/uapi/linux/dm-ioctl.h; drivers/md/dm-ioctl.c.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from engine._native import is_sysfs
from engine.errors import LunscopeError, words_of
from engine.hostfs.dm_control import (
    CONTROL,
    HEADER,
    NO_FLUSH,
    READ_ONLY,
    TARGET,
    MapAnswer,
    Number,
    header_of,
    query_map,
)

_DEV_SUSPEND, _TABLE_LOAD, _TABLE_CLEAR, _TARGET_MESSAGE = (
    0xC000FD00 | HEADER.size << 16 | nr for nr in (6, 9, 10, 14)
)
_SKIP_LOCKFS = 1 << 10
_SECTOR = struct.Struct("=Q")
"""Begin of struct dm_target_msg."""


class Maps(Protocol):
    """What is done with maps, by their device numbers; errors of the kernel are LunscopeError."""

    def refusal(self) -> str:
        """Say why maps cannot be changed; empty if they can."""

    def query(self, number: Number, *, table: bool, inactive: bool = False) -> MapAnswer | None:
        """Read the active table or status, or that of a loaded table; None where there is none."""

    def send(self, number: Number, message: str) -> None:
        """Send a message to the target at sector 0."""

    def load(self, number: Number, target: MapAnswer) -> None:
        """Load a table of one target; it is not used before `resume`."""

    def clear(self, number: Number) -> None:
        """Drop a loaded table."""

    def resume(self, number: Number) -> None:
        """Make a loaded table the active one, while I/Os wait."""


class KernelMaps:
    """Maps of the running kernel."""

    def __init__(self, sysfs: str) -> None:
        self._is_kernel = is_sysfs(sysfs)

    def refusal(self) -> str:
        """Say why maps cannot be changed; empty if they can."""
        if not self._is_kernel:
            return "not the sysfs of the running kernel"
        try:
            os.close(os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC))
        except OSError as error:
            return f"{CONTROL}: {words_of(error)}{': run as root' if os.geteuid() else ''}"
        return ""

    def query(self, number: Number, *, table: bool, inactive: bool = False) -> MapAnswer | None:
        """Read the active table or status, or that of a loaded table; None where there is none."""
        if not self._is_kernel:
            return None
        try:
            control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return query_map(control, number, table=table, inactive=inactive)
        except OSError:
            return None
        finally:
            os.close(control)

    def send(self, number: Number, message: str) -> None:
        """Send a message to the target at sector 0."""
        content = _SECTOR.pack(0) + message.encode("ascii") + b"\0"
        with _said(number, f"when sending '{message}'"):
            self._call(_TARGET_MESSAGE, _request(number, 0, content))

    def load(self, number: Number, target: MapAnswer) -> None:
        """Load a table of one target; it is not used before `resume`."""
        parameters = target.parameters.encode("ascii") + b"\0"
        length = -(-(TARGET.size + len(parameters)) // 8) * 8
        content = TARGET.pack(target.start, target.sectors, 0, length, target.kind.encode("ascii"))
        with _said(number, "when loading a table"):
            request = _request(number, target.flags & READ_ONLY, (content + parameters).ljust(length, b"\0"), targets=1)
            self._call(_TABLE_LOAD, request)

    def clear(self, number: Number) -> None:
        """Drop a loaded table."""
        with _said(number, "when clearing the loaded table"):
            self._call(_TABLE_CLEAR, _request(number, 0))

    def resume(self, number: Number) -> None:
        """Make a loaded table the active one, while I/Os wait.

        One ioctl suspends, exchanges the tables and resumes (do_resume of drivers/md/dm-ioctl.c), so that no end of
        this process leaves the map suspended. Without a flush, I/Os that no path takes are kept for the new table;
        with one they would fail (multipath_presuspend of drivers/md/dm-mpath.c).
        """
        with _said(number, "when exchanging the table"):
            self._call(_DEV_SUSPEND, _request(number, NO_FLUSH | _SKIP_LOCKFS))

    def _call(self, request: int, buffer: bytearray) -> None:
        if not self._is_kernel:
            raise OSError(errno.ENODEV, "not the sysfs of the running kernel")
        control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
        try:
            # fcntl.ioctl keeps the interpreter locked with buffers above 1,024 bytes: only tables are so long, which
            # are loaded without waiting for I/O.
            fcntl.ioctl(control, request, buffer)
        finally:
            os.close(control)


def _request(number: Number, flags: int, content: bytes = b"", *, targets: int = 0) -> bytearray:
    size = -(-(HEADER.size + len(content)) // 8) * 8
    buffer = bytearray(size)
    HEADER.pack_into(buffer, 0, *header_of(number, size, flags, targets=targets))
    buffer[HEADER.size : HEADER.size + len(content)] = content
    return buffer


_HINTS = {
    errno.EINVAL: " (the kernel's log says why; a path selector may be a module that is missing)",
    errno.ENXIO: " (it is gone)",
    errno.EINTR: " (interrupted: I/Os were outstanding)",
}


@contextmanager
def _said(number: Number, when: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = _HINTS.get(error.errno or 0, "")
        text = f"device mapper {number[0]}:{number[1]}: {words_of(error)}{hint} {when}"
        raise LunscopeError(text) from None
