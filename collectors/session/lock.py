"""The lock of a recording in progress, which goes with its process, whatever ends it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
from pathlib import Path

_PLACE = 1 << 62
"""Far beyond the bytes that SQLite locks (os_unix.c, PENDING_BYTE) and beyond any content."""
_FLOCK = struct.Struct("hhqqi4x")
"""struct flock of fcntl(2) on 64-bit Linux: type, whence, start, len, pid."""


class RecordingLock:
    """Holds one byte of a session file by an open file description lock (fcntl(2), F_OFD_SETLK).

    The kernel drops it with the last descriptor, also after a kill -9. A record lock would be SQLite's as well: it is
    lost when any descriptor of the file is closed. Where the filesystem has no locks there is none.
    """

    def __init__(self, descriptor: int) -> None:
        """Take over a descriptor that is open for writing, and lock its file.

        Raises:
            BlockingIOError: another one holds the lock.
        """
        self._descriptor: int | None = descriptor
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _PLACE, 1, 0))
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                self.release()
                raise BlockingIOError(error.errno, error.strerror) from None

    def release(self) -> None:
        """Let go; may be called twice. To be called after SQLite has closed the file."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None


def is_recording(path: Path) -> bool:
    """Whether a process records to this file now, as far as can be told."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        RecordingLock(descriptor).release()
    except BlockingIOError:
        return True
    return False
