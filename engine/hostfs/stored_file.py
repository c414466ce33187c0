"""Whether two files are the same bytes: by device and inode, and through the layers of overlays.

A file on an overlay has a device number of its own, while its bytes are those of a file in one of the layers. Nothing
in it names that file, and paths of layers are those of the namespace of whoever mounted the overlay. But the kernel
takes the attributes of a file on an overlay from the file in the layer (ovl_getattr in fs/overlayfs/inode.c): they were
made at the same nanosecond, and have the same inode number unless the file was copied up.
"""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from engine.hostfs.kernel_files import link_target
from engine.syscalls import Statx, statx

_NUMBER_BITS = 0xFFFFFFFF
"""Bits of an inode number; an overlay may set higher ones (`xino` in Documentation/filesystems/overlayfs.rst)."""
_ORIGINS = ("trusted.overlay.origin", "user.overlay.origin")
"""The attribute that a file has which an overlay copied up; the second with its option `userxattr`."""
_ALL_USERS = ["0", "0", "4294967295"]
"""uid_map of the first user namespace (user_namespaces(7)): only there are attributes named trusted. seen."""


class StoredFile(Struct, frozen=True):
    """A regular file, as far as it is known."""

    device: int
    inode: int
    size_bytes: int | None = None
    birth_ns: int | None = None
    """Time of birth; None where the filesystem does not keep it."""
    path: str = ""
    """Path that leads to it; empty where only the numbers are known."""
    is_metadata: bool = False
    """Whether an overlay may have its bytes from another file than all of this (`metacopy`)."""


def from_statx(status: Statx, path: str) -> StoredFile:
    """Make one of what statx(2) says."""
    return StoredFile(status.device, status.inode, status.size_bytes, status.birth_ns, path)


def stored_file(fd: int) -> StoredFile:
    """Identify an open file."""
    return from_statx(statx(fd), f"/proc/self/fd/{fd}")


def found_by_name(path: str, roots: Sequence[str]) -> list[tuple[Statx, str]]:
    """Find what a path leads to below each root, with the path that leads there from here; every inode once.

    A root is ours, empty, or that of a process (/proc/PID/root), which may be a folder of its namespace.
    """
    found: dict[tuple[int, int], tuple[Statx, str]] = {}
    for root in roots:
        for name in _names_below(root, path):
            try:
                status = statx(name)
            except OSError:
                continue
            found.setdefault((status.device, status.inode), (status, name))
    return list(found.values())


def _names_below(root: str, path: str) -> Iterator[str]:
    yield root + path
    folder = link_target(root).rstrip("/") if root else ""
    if folder and path.startswith(f"{folder}/"):
        yield root + path.removeprefix(folder)


IsOverlay = Callable[[StoredFile], bool | None]
"""Whether a file is seen through an overlay; None where that is not known."""


def same_bytes(first: StoredFile, second: StoredFile, is_overlay: IsOverlay) -> bool | None:
    """Whether writing to one file changes the other; None where that cannot be found out."""
    if first.device == second.device:
        return first.inode == second.inode
    if first.is_metadata or second.is_metadata:
        return None if _may_be_as_large(first, second) else False
    if first.path and second.path and first.birth_ns != second.birth_ns:
        return False
    direct = [file for file in (first, second) if is_overlay(file) is False]
    return len(direct) < len((first, second)) and _same_by_layer(first, second, direct)


def _same_by_layer(first: StoredFile, second: StoredFile, direct: list[StoredFile]) -> bool | None:
    """Compare two files made at the same time; at least one is seen through an overlay."""
    if not (first.inode ^ second.inode) & _NUMBER_BITS:
        return True
    if direct and not _may_be_copy(direct[0]):
        return False
    if first.path and second.path:
        return first.birth_ns is not None or _may_be_as_large(first, second)
    return None if _may_be_as_large(first, second) else False


def _may_be_as_large(first: StoredFile, second: StoredFile) -> bool:
    """Compare sizes in sectors, as those of loop devices are."""
    sizes = [file.size_bytes // 512 for file in (first, second) if file.size_bytes is not None]
    return len(set(sizes)) <= 1


def _may_be_copy(file: StoredFile) -> bool:
    """Whether an overlay may have copied a file up, so that its number there is that of the original.

    Where the layer does not keep the attribute, the overlay notes it in memory only.
    """
    if not file.path or not _sees_trusted():
        return True
    try:
        status = statx(file.path)
        if (status.device, status.inode) != (file.device, file.inode):
            return True
    except OSError:
        return True
    return any(_may_have(file.path, name) for name in _ORIGINS)


def _may_have(path: str, attribute: str) -> bool:
    try:
        os.getxattr(path, attribute)
    except OSError as error:
        return error.errno != errno.ENODATA
    return True


@functools.cache
def _sees_trusted() -> bool:
    try:
        return os.geteuid() == 0 and Path("/proc/self/uid_map").read_text().split() == _ALL_USERS
    except OSError:
        return False
