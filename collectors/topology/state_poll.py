"""Polling of path states, whose changes the kernel seldom announces, and of the event numbers of multipath maps."""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from collectors.graph import Graph, Path
from collectors.kernel.identity import sysfs_name
from collectors.kernel.sysfs import number, read_class, text
from collectors.kernel.uevents import Budget
from engine._native import AttributeWatch
from engine.hostfs.dm_control import BUFFER_FULL, CONTROL, HEADER, Number, decoded, header_of

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


LIMIT_SHARE = 0.01
"""Share of one core for reading the limits of commands, which change rarely and are not urgent."""
MOST_REPORTS = 3
"""Times the same difference between sysfs and a graph is reported: further scans would not fix it either."""

Values = Sequence[bytes | None]
Differs = Callable[[Path, Values], bool]


class StatePoll:
    """Compares the states in sysfs with those in a graph; 19,200 SCSI paths take about 40 ms of CPU per poll."""

    def __init__(self, sysfs: str, *, keep: bool | None = None) -> None:
        """Set the path to read; `keep` is that of AttributeWatch."""
        self._sysfs = sysfs
        self._scsi = _Watched(sysfs, ("device/state", "device/access_state"), keep)
        self._nvme = _Watched(sysfs, ("ana_state",), keep)
        self._limits = _Watched(sysfs, ("device/queue_depth", "device/timeout", "device/eh_timeout"), keep=False)
        self._limit_budget = Budget(LIMIT_SHARE)
        self._controllers: Mapping[str, str] = {}
        self._graph = Graph()
        self._reported: Counter[tuple[str, Values]] = Counter()
        self.read_ns: int | None = None
        """CLOCK_MONOTONIC when the last read of all states began; None before the first, and without paths."""

    def changed(self, graph: Graph) -> frozenset[str]:
        """Read all states; return the names of paths with a state, access, limit or timeout other than in the graph.

        Vanished paths are not included: hot-plug detects those.
        """
        started_ns = time.monotonic_ns()
        self._follow(graph)
        names = self._scsi.differing(_scsi_differs) | self._nvme.differing(self._nvme_differs())
        if self._limit_budget.allows():
            started_s = time.thread_time()
            names |= self._limits.differing(_limit_differs)
            self._limit_budget.spend(time.thread_time() - started_s)
        self.read_ns = started_ns if graph.paths else None
        return self._news(names)

    def confirm(self, graph: Graph, names: frozenset[str]) -> frozenset[str]:
        """Read the states of some paths now; return the names of those with a changed state or access."""
        self._follow(graph)
        found = self._scsi.differing(_scsi_differs, names) | self._nvme.differing(self._nvme_differs(), names)
        return self._news(found)

    def close(self) -> None:
        """Close all descriptors; the next read opens them again."""
        for watched in (self._scsi, self._nvme, self._limits):
            watched.close()

    def _follow(self, graph: Graph) -> None:
        if graph is self._graph:
            return
        self._graph = graph
        scsi = [path for path in graph.paths if path.is_scsi]
        self._scsi.follow(scsi)
        self._limits.follow(scsi)
        self._nvme.follow(path for path in graph.paths if is_nvme(path))

    def _nvme_differs(self) -> Differs:
        if not self._nvme.paths:
            return _no_difference
        controllers = {name: facts["state"] for name, facts in read_class(self._sysfs, "nvme", ("state",)).items()}
        if controllers != self._controllers:
            self._controllers = controllers
            self._nvme.compare_all()

        def differs(path: Path, values: Values) -> bool:
            state, access = controllers.get(path.address.split()[0], ""), text(values[0])
            return bool(state and state != path.state) or bool(access and access != path.access)

        return differs

    def _news(self, found: frozenset[tuple[str, Values]]) -> frozenset[str]:
        """Names of paths that differ, without those already reported several times with the same values."""
        self._reported = Counter({one: times for one, times in self._reported.items() if one in found})
        fresh = [one for one in found if self._reported[one] < MOST_REPORTS]
        self._reported.update(fresh)
        return frozenset(name for name, _ in fresh)


def is_nvme(path: Path) -> bool:
    """Whether a path is a namespace of an NVMe controller."""
    return path.address.startswith("nvme")


def _scsi_differs(path: Path, values: Values) -> bool:
    state, access = text(values[0]), text(values[1])
    return bool(state and state != path.state) or bool(access and access != path.access)


def _limit_differs(path: Path, values: Values) -> bool:
    limit, timeout_s, eh_timeout_s = map(number, values)
    pairs = (
        (limit, path.queue_limit),
        (None if timeout_s is None else 1000 * timeout_s, path.timeout_ms),
        (eh_timeout_s, path.eh_timeout_s),
    )
    return any(read is not None and read != known for read, known in pairs)


def _no_difference(_path: Path, _values: Values) -> bool:
    return False


class _Watched:
    """Attributes of some paths: last values read, and the paths of the graph."""

    def __init__(self, sysfs: str, attributes: tuple[str, ...], keep: bool | None) -> None:
        self._folder = f"{sysfs}/block"
        self._attributes = attributes
        self._keep = keep
        self._watch: AttributeWatch | None = None
        self._keys: tuple[str, ...] = ()
        self._rows: Mapping[str, int] = {}
        self._values: list[Values] = []
        self._due: set[int] = set()
        """Rows to be compared: with new values, with a new graph, or that differed before."""
        self.paths: tuple[Path, ...] = ()

    def follow(self, paths: Iterable[Path]) -> None:
        """Take the paths of another graph; descriptors are opened again only if paths were added or removed."""
        self.paths = tuple(paths)
        self.compare_all()
        keys = tuple(path.key for path in self.paths)
        if keys != self._keys:
            self._keys, self._watch = keys, None
            self._rows = {path.name: row for row, path in enumerate(self.paths)}
            self._values = [(None,) * len(self._attributes)] * len(keys)

    def close(self) -> None:
        """Close the descriptors."""
        self._watch = None

    def compare_all(self) -> None:
        """Compare all paths at the next read, whether their own attributes changed or not."""
        self._due = set(range(len(self.paths)))

    def differing(self, differs: Differs, names: frozenset[str] | None = None) -> frozenset[tuple[str, Values]]:
        """Read all paths, or those named; return names and values of those that differ from the graph."""
        if not self.paths:
            return frozenset()
        rows = None if names is None else [self._rows[name] for name in names if name in self._rows]
        for row, values in self._read(rows):
            self._values[row] = tuple(values)
            self._due.add(row)
        due = self._due if rows is None else self._due.intersection(rows)
        equal = {row for row in due if not differs(self.paths[row], self._values[row])}
        self._due -= equal
        return frozenset((self.paths[row].name, self._values[row]) for row in due - equal)

    def _read(self, rows: Sequence[int] | None) -> list[tuple[int, list[bytes | None]]]:
        try:
            if self._watch is None:
                names = [sysfs_name(path.name) for path in self.paths]
                self._watch = AttributeWatch(self._folder, names, self._attributes, keep=self._keep)
            return self._watch.read(rows)
        except OSError:
            return []
