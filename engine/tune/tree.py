"""The only module that writes to the kernel's files: beneath one root, existing regular files, one line at a time.

Maps of the device mapper have none: `map_ioctls.py`.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

from engine.errors import LunscopeError, UsageError, words_of
from engine.syscalls import open_beneath
from engine.text import safe_text, short_text
from engine.tune.map_ioctls import KernelMaps, Maps

MOST_CHARACTERS = 256
"""Longer than any value of a tunable; sysfs takes at most a page."""

_READ_BYTES = 65536


def check_path(path: str) -> None:
    """Refuse a path that is not plainly below its root.

    Raises:
        UsageError: it is absolute, or has an empty part, `.`, `..` or a NUL.
    """
    if "\0" in path or any(part in {"", ".", ".."} for part in path.split("/")):
        raise UsageError(f"{_shown(path)} is no path below the kernel's tree: name the device or group itself")


def check_line(text: str) -> None:
    """Refuse what is not one short printable line.

    Raises:
        UsageError: it is not.
    """
    if not text or len(text) > MOST_CHARACTERS or not text.isprintable() or not text.isascii():
        raise UsageError(
            f"{_shown(text)} is no value: write one line of at most {MOST_CHARACTERS} printable characters"
        )


class KernelTree:
    """Reads and writes files below a root, /sys by default; paths are relative to it."""

    def __init__(self, root: Path = Path("/sys")) -> None:
        self.root = Path(os.path.realpath(root))
        self._prefix = f"{self.root}/"
        self.maps: Maps = KernelMaps(str(self.root))
        try:
            self._descriptor = os.open(self.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise LunscopeError(f"{self.root}: {words_of(error)}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the root; once."""
        os.close(self._descriptor)

    def read(self, path: str) -> str | None:
        """Return the content of a small file without the line end; None where it is gone or cannot be read."""
        try:
            descriptor = os.open(self._prefix + path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return os.read(descriptor, _READ_BYTES).decode(errors="surrogateescape").strip()
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def names(self, folder: str) -> list[str]:
        """List a folder, sorted; empty where it is gone."""
        try:
            return sorted(os.listdir(self._prefix + folder))  # noqa: PTH208 - names only
        except OSError:
            return []

    def inode(self, path: str) -> int | None:
        """Return the inode number of a folder, which kernfs does not give to the next device of the same name."""
        try:
            return os.stat(self._prefix + path).st_ino  # noqa: PTH116 - for thousands of devices
        except OSError:
            return None

    def refusal(self, path: str) -> str:
        """Say why a file cannot be written; empty if it can, as far as can be seen without writing.

        Root may not write what has no write bit either (KERNFS_ROOT_EXTRA_OPEN_PERM_CHECK, fs/kernfs/file.c).
        """
        full = self._prefix + path
        try:
            mode = os.stat(full).st_mode  # noqa: PTH116 - as above
        except OSError as error:
            return words_of(error)
        if not mode & 0o222:
            return "read-only: the driver cannot change it"
        if not os.access(full, os.W_OK):
            return "no permission to write it: run as root" if os.geteuid() else "the file system is read-only"
        return ""

    def write(self, path: str, text: str) -> None:
        """Write one line to an existing file.

        The kernel itself keeps the path below the root, whatever the links on its way (openat2(2)).

        Raises:
            UsageError: path or text are not what is written here.
            LunscopeError: the kernel refuses; the message names the file.
        """
        check_path(path)
        check_line(text)
        try:
            descriptor = open_beneath(self._descriptor, path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW)
            try:
                _write_all(descriptor, f"{text}\n".encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            raise LunscopeError(f"{self._prefix}{path}: {_why(error)} when writing {_shown(text)}") from None


def _write_all(descriptor: int, content: bytes) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    if os.write(descriptor, content) != len(content):
        raise OSError(errno.EIO, "the kernel took only a part")


def _why(error: OSError) -> str:
    match error.errno:
        case errno.EINVAL:
            return f"{words_of(error)} (EINVAL: not a legal value here)"
        case errno.ENOENT | errno.ENODEV | errno.ENXIO:
            return f"{words_of(error)} (it is gone)"
        case errno.EXDEV | errno.ELOOP:
            return "it leads out of the tree, or is a link"
        case _:
            return words_of(error)


def _shown(text: str) -> str:
    return f"'{safe_text(short_text(text, 80))}'"
