"""Creation of the file of a recording: private, locked, and without damage to other files."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
from pathlib import Path

from collectors.session.database import WAL_SUFFIXES, Database, wal_files
from engine.errors import LunscopeError, RefusedError, UsageError, unusable

_PLACE = 1 << 62
"""Offset of the lock: far beyond the bytes that SQLite locks (os_unix.c, PENDING_BYTE) and beyond any content."""
_FLOCK = struct.Struct("hhqqi4x")
"""struct flock of fcntl(2) on 64-bit Linux: type, whence, start, len, pid."""


class RecordingLock:
    """Holds one byte of a session file by an open file description lock (fcntl(2), F_OFD_SETLK).

    The kernel releases it with the last descriptor, also after a kill -9. A POSIX record lock would conflict with
    SQLite's: it is lost when any descriptor of the file is closed. On filesystems without locks there is none.
    """

    def __init__(self, descriptor: int) -> None:
        """Take over a descriptor that is open for writing, and lock its file.

        Raises:
            BlockingIOError: another process holds the lock.
        """
        self._descriptor: int | None = descriptor
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _PLACE, 1, 0))
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                self.release()
                raise BlockingIOError(error.errno, error.strerror) from None

    def release(self) -> None:
        """Release the lock; may be called twice. To be called after SQLite has closed the file."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None


def is_recording(path: Path) -> bool:
    """Whether a process records to this file now, as far as can be detected."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        RecordingLock(descriptor).release()
    except BlockingIOError:
        return True
    return False


def create_private(path: Path) -> RecordingLock:
    """Create an empty file that only its owner may read, locked as a recording in progress.

    Raises:
        RefusedError: the path leads through another user's link, or a -wal or -shm file of another recording exists.
        UsageError: the file exists.
        LunscopeError: the folder is missing or not writable.
    """
    refuse_foreign_links(path)
    _refuse_long_name(path)
    if not os.path.lexists(path) and (left := wal_files(path)):
        raise RefusedError(f"{path}: {left[0].name} of another recording is beside it; remove it or use another name")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        return RecordingLock(descriptor)
    except BlockingIOError:
        raise RefusedError(f"{path}: another process records to it; use another name") from None
    except FileExistsError:
        raise UsageError(f"{path}: exists; use another name or --overwrite") from None
    except OSError as error:
        raise unusable(f"{path}: cannot be made: {error.strerror}; record to another folder", error) from error


def _refuse_long_name(path: Path) -> None:
    """Check that SQLite can create its log next to the file, which has a longer name."""
    try:
        longest = os.pathconf(path.parent, "PC_NAME_MAX") - max(map(len, WAL_SUFFIXES))
    except OSError:
        return
    length = len(os.fsencode(path.name))
    if length > longest:
        raise UsageError(f"{path}: a name of {length} bytes: give one of at most {longest}, for the log beside it")


def remove_existing(path: Path) -> None:
    """Remove a recording that will be overwritten.

    Raises:
        RefusedError: it is not a session, nothing of it can be read, or it is being recorded.
        LunscopeError: it cannot be removed.
    """
    if path.is_symlink() or not path.is_file():
        raise RefusedError(f"{path}: not a regular file; it is not overwritten")
    if is_recording(path):
        raise RefusedError(f"{path}: not overwritten: another process records to it; end that one or use another name")
    if path.stat().st_size:
        try:
            Database(path).close()
        except LunscopeError as error:
            raise RefusedError(f"{path}: not overwritten: no readable lunscope session; remove it first") from error
    try:
        for file in (*wal_files(path), path):
            file.unlink(missing_ok=True)
    except OSError as error:
        raise LunscopeError(f"{error.filename}: cannot be removed: {error.strerror}; use another name") from error


def refuse_foreign_links(path: Path) -> None:
    """Check links in the path as the kernel does with fs.protected_symlinks, which may be off.

    Raises:
        RefusedError: a link in a world-writable folder belongs neither to this user nor to the folder's owner.
    """
    walked = Path(path.anchor or ".")
    for part in path.parts[1 if path.anchor else 0 :]:
        folder, walked = walked, walked / part
        try:
            link, around = walked.lstat(), folder.stat()
        except OSError:
            return
        anybody = around.st_mode & stat.S_ISVTX and around.st_mode & stat.S_IWOTH
        if stat.S_ISLNK(link.st_mode) and anybody and link.st_uid not in {os.geteuid(), around.st_uid}:
            raise RefusedError(
                f"{walked}: a link made by another user (uid {link.st_uid}) in {folder}; use another path"
            )
