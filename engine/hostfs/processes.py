"""What a process can write through: descriptors, those that single threads keep for themselves, mappings, rings.

A host has thousands of processes, and they are read again and again: what is read of each is cheap.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator

from msgspec import Struct

from engine.hostfs.kernel_files import link_target, names_in, whole
from engine.syscalls import share_files

_SHARED = re.compile(
    rb"^(([0-9a-f]+)-([0-9a-f]+)) .([w-]).s [0-9a-f]+ [0-9a-f]+:[0-9a-f]+ ([1-9][0-9]*) +(/.*)$", re.MULTILINE
)
"""Address range, right to write, inode and path of a line of maps (proc_pid_maps(5)); without an inode it is memory."""
_RING = "anon_inode:[io_uring]"
_MEMORY = (b"/memfd:", b"/dev/zero (deleted)", b"/SYSV")


class WritableFile(Struct, frozen=True):
    """Something a process can write to, by a path in /proc that leads to the very inode."""

    path: str
    how: str
    """Participle for "is ... by NAME (pid N)"."""
    name: str = ""
    """Path of the file of a mapping, for those who may not follow `path`."""
    inode: int = 0
    """Inode that the name must have."""
    protected: Protected | None = None
    """Present for a mapping that is not writable now."""


class Protected(Struct, frozen=True):
    """A shared mapping without the right to write, which mprotect(2) gives it if its file was open for writing."""

    smaps: str
    address: bytes

    def may_be_written(self) -> bool:
        """Read whether it may (`mw` among VmFlags, proc_pid_smaps(5)); costly, as the kernel walks all pages above."""
        is_meant = False
        try:
            with open(self.smaps, "rb") as file:  # noqa: PTH123 - as in kernel_files
                for line in file:
                    if line.startswith(self.address):
                        is_meant = True
                    elif is_meant and line.startswith(b"VmFlags:"):
                        return b"mw" in line.split()
        except OSError:
            return False
        return False


def _rights(path: str) -> int:
    """Return what a descriptor is open for as S_IRUSR and S_IWUSR of its link: read faster than its flags."""
    try:
        return os.lstat(path).st_mode & (stat.S_IRUSR | stat.S_IWUSR)
    except OSError:
        return 0


def _tables(process: str, threads: list[str]) -> Iterator[tuple[str, str]]:
    """Name the folders of all descriptor tables of a process, and how each is used; most have one for all threads."""
    yield process, "open for writing"
    leader = int(process.rpartition("/")[2])
    for thread in threads:
        if int(thread) != leader and not share_files(leader, int(thread)):
            yield f"{process}/task/{thread}", "open for writing in a thread of its own"


def _descriptors(table: str, how: str, rings: list[str]) -> Iterator[WritableFile]:
    for name in names_in(f"{table}/fd"):
        path = f"{table}/fd/{name}"
        text = link_target(path)
        # Sockets, pipes and other things without a file begin with a word.
        if text.startswith(("/", "(unreachable)")):
            if _rights(path) & stat.S_IWUSR:
                yield WritableFile(path, how)
        elif text == _RING:
            rings.append(f"{table}/fdinfo/{name}")


def _mappings(process: str, threads: list[str], rings: list[str]) -> Iterator[WritableFile]:
    """List what is mapped to be written back. A process whose first thread has ended shows its memory in the others."""
    procfs = process.rpartition("/")[0]
    # /proc/TID is not listed but there; map_files is there only.
    for folder in (process, *(f"{procfs}/{thread}" for thread in threads[-1:])):
        maps = whole(f"{folder}/maps")
        for match in _SHARED.finditer(maps):
            if not match[6].startswith(_MEMORY):
                # The folder has the addresses without leading zeros.
                path = f"{folder}/map_files/{int(match[2], 16):x}-{int(match[3], 16):x}"
                name = f"{folder}/root{os.fsdecode(match[6])}"
                protected = None if match[4] == b"w" else Protected(f"{folder}/smaps", match[1] + b" ")
                yield WritableFile(path, "mapped for writing", name, int(match[5]), protected)
        if maps:
            if not rings and _RING.encode() in maps:
                rings.append("")
            return


def writable_files(process: str, rings: list[str]) -> Iterator[WritableFile]:
    """List what a process, given by its folder in /proc, can write to; it may be no storage.

    Args:
        process: the folder.
        rings: gets the file in fdinfo of each of its rings (io_uring(7)), or an empty text if they are mapped but have
            no descriptor (io_uring_close_ring_fd(3)).

    Raises:
        PermissionError: it belongs to another user.
    """
    threads = names_in(f"{process}/task")
    for table, how in _tables(process, threads):
        yield from _descriptors(table, how, rings)
    yield from _mappings(process, threads, rings)


class Descriptor(Struct, frozen=True):
    """An open file of a process."""

    path: str
    """Path of the descriptor in /proc."""
    target: str
    """Target of its link: a path without the namespace that it belongs to."""
    is_for_reading: bool
    """Only."""


def descriptors_of(process: str) -> Iterator[Descriptor]:
    """List the descriptors of a process.

    Raises:
        PermissionError: it belongs to another user.
    """
    for name in names_in(f"{process}/fd"):
        path = f"{process}/fd/{name}"
        if target := link_target(path):
            yield Descriptor(path, target, _rights(path) == stat.S_IRUSR)
