"""The control groups of the host and their limits, rescanned by a background thread.

Lines of limits in an unknown format are ignored.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event as StopFlag

from msgspec import Struct

from collectors.model import MISSING
from collectors.sampling.reading import BackgroundThread
from collectors.tables.cgroup.schema import LIMITS
from engine.hostfs.cgroups import blkio_root, unified_root
from engine.hostfs.kernel_files import whole
from engine.text import whole_number

CADENCE_S = 2.0
CPU_SHARE = 0.01
"""Share of one core; hosts with thousands of groups are rescanned less often."""
MOST_GROUPS = 4096
"""More than any managed host has. The I/O of groups left out is in the counters of their ancestors."""

_LEAF_LINKS = 2
"""Link count of a folder without subfolders; kernfs keeps it, as most filesystems do."""
_V1_LIMITS = tuple(f"blkio.throttle.{name}_device" for name in ("read_bps", "write_bps", "read_iops", "write_iops"))
_V1_COUNTERS = ("blkio.throttle.io_service_bytes", "blkio.throttle.io_serviced")


class Hierarchy(Struct, frozen=True):
    """Path of a cgroup hierarchy and the names of its I/O files."""

    root: str
    counters: tuple[str, ...]
    """`io.stat` of cgroup v2, or two files of v1."""
    limits: tuple[str, ...]
    adds_up: bool
    """Whether the counters of a group include those of its descendants."""

    @property
    def v2(self) -> bool:
        """Whether it is of cgroup v2."""
        return len(self.counters) == 1


class Group(Struct, frozen=True):
    """One control group; a group made again under the same path is another one."""

    path: str
    """Path from the root of the hierarchy, which is "/"."""
    number: int
    """Inode number of its folder, which kernfs never reuses (the cgroup id of v2)."""
    folder: str
    parent: str
    """Path of the parent; its own for the root."""
    limits: Limits


def find_hierarchy(sysfs: str) -> Hierarchy | None:
    """Find where I/O is accounted to groups: v2, or `blkio` of v1; None where it is not.

    Both are where systemd mounts them. A host may have both, but only one has the controller.
    """
    unified = unified_root(Path(sysfs))
    if unified is not None:
        return Hierarchy(str(unified), ("io.stat",), ("io.max",), adds_up=True)
    root = blkio_root(Path(sysfs))
    for suffix in ("_recursive", ""):
        counters = tuple(name + suffix for name in _V1_COUNTERS)
        if all((root / name).exists() for name in counters):
            return Hierarchy(str(root), counters, _V1_LIMITS, adds_up=bool(suffix))
    return None


class GroupScan(Struct, frozen=True):
    """The groups found by one scan."""

    groups: tuple[Group, ...]
    """Ancestors before their descendants."""
    left_out: bool
    """Whether there are more than MOST_GROUPS; the deepest are missing."""


def scan(hierarchy: Hierarchy) -> GroupScan:
    """List the groups of a hierarchy, level by level, up to MOST_GROUPS."""
    found: list[Group] = []
    waiting = list(_group(hierarchy, hierarchy.root, "/", "/"))
    left_out = False
    while waiting and not left_out:
        room = MOST_GROUPS - len(found)
        groups, left_out, waiting = waiting[:room], len(waiting) > room, []
        for group, links in groups:
            found.append(group)
            if links != _LEAF_LINKS:
                waiting += _children(hierarchy, group)
    ordered = sorted(found, key=lambda group: group.path.split("/") if group.path != "/" else [])
    return GroupScan(tuple(ordered), left_out)


def _children(hierarchy: Hierarchy, group: Group) -> Iterator[tuple[Group, int]]:
    with suppress(OSError):  # It vanished.
        with os.scandir(group.folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        for name in names:
            path = f"{group.path.rstrip('/')}/{name}"
            yield from _group(hierarchy, f"{group.folder}/{name}", path, group.path)


def _group(hierarchy: Hierarchy, folder: str, path: str, parent: str) -> Iterator[tuple[Group, int]]:
    with suppress(OSError):
        status = Path(folder).stat()
        texts = [whole(f"{folder}/{name}") for name in hierarchy.limits]
        limits = io_max(texts[0]) if hierarchy.v2 else blkio_limits(texts)
        yield Group(path, status.st_ino, folder, parent, limits), status.st_nlink


class GroupTree:
    """Scans a hierarchy on a thread of its own; the first time at once, so that the first sample has rows."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self._hierarchy = hierarchy
        self.found = scan(hierarchy)
        """The same object until a group is added or removed or a limit changes."""
        self._thread = BackgroundThread("cgroups", self._run)

    def check(self) -> None:
        """Raise the error that ended the thread.

        Raises:
            RuntimeError: the thread has failed.
        """
        self._thread.check()

    def close(self) -> None:
        """Stop the thread."""
        self._thread.stop()

    def _run(self, stop: StopFlag) -> None:
        pause_s = CADENCE_S
        while not stop.wait(pause_s):
            before = time.thread_time()
            found = scan(self._hierarchy)
            if found != self.found:
                self.found = found
            pause_s = max(CADENCE_S, (time.thread_time() - before) / CPU_SHARE)


Number = tuple[int, int]
"""Major and minor of a device."""
Limits = Mapping[Number, tuple[int, ...]]
"""Limits by device, in the order of LIMITS; MISSING where there is none."""

_MAX_KEYS = ("rbps", "wbps", "riops", "wiops")
_MISSING = int(MISSING)


def io_max(text: bytes) -> Limits:
    """Read `io.max`: "8:16 rbps=2097152 wbps=max riops=max wiops=120"."""
    limits = {}
    for line in text.decode("utf-8", "replace").splitlines():
        device, _, rest = line.partition(" ")
        number, found = _number(device), dict(_pairs(rest.split()))
        if number is not None:
            limits[number] = tuple(_count(found.get(key)) for key in _MAX_KEYS)
    return limits


def blkio_limits(texts: Iterable[bytes]) -> Limits:
    """Read the files `blkio.throttle.*_device` of cgroup v1 in the order of LIMITS: "8:16 2097152"."""
    limits: dict[Number, list[int]] = {}
    for column, text in enumerate(texts):
        for line in text.decode("utf-8", "replace").splitlines():
            device, _, limit = line.partition(" ")
            number = _number(device)
            if number is not None:
                limits.setdefault(number, [_MISSING] * len(LIMITS))[column] = _count(limit.strip())
    return {number: tuple(row) for number, row in limits.items()}


def _pairs(words: Iterable[str]) -> Iterable[tuple[str, str]]:
    return ((key, value) for key, _, value in (word.partition("=") for word in words))


def _number(text: str) -> Number | None:
    major, _, minor = text.partition(":")
    numbers = whole_number(major), whole_number(minor)
    return None if numbers[0] is None or numbers[1] is None else (numbers[0], numbers[1])


def _count(text: str | None) -> int:
    count = None if text is None else whole_number(text)
    return count if count is not None and count < _MISSING else _MISSING
