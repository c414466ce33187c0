"""Waits for the limits of control groups, timed by programs on the kernel's block throttle while any group has a limit.

The kernel holds such I/Os in blk_throtl_bio() before any event of the block layer: no other counter has this time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from collectors.model import Histograms, Rows, Table
from collectors.sampling.reading import BackgroundThread
from collectors.tables.cgroup.schema import CGROUP, THROTTLE_SCALE, THROTTLE_SERIES, THROTTLED
from collectors.tables.cgroup.tree import Group
from engine import _native
from engine.errors import words_of

PLACES = 8192
"""Pairs of group and device that can be told apart; those of removed groups stay until the programs start anew."""

Waits = tuple[NDArray[np.uint64], NDArray[np.uint64]]
"""Rows of cgroup, major, minor, I/Os and nanoseconds since the start; cells of row, bucket, count of the interval."""
Place = tuple[int, int, int]
"""Number of the group, major and minor of the device."""

_IOS, _WAIT_NS = 3, 4
_COLUMNS = [CGROUP.index(name) for name in THROTTLED]


class ThrottleProgram(Protocol):
    """Programs on the block throttle; implemented by engine._native.ThrottleTracer."""

    def read(self) -> Waits:
        """Return all waits since the start, and the histograms since the last call."""

    def losses(self) -> tuple[int, int]:
        """Count I/Os of groups beyond the places, and I/Os held beyond the room for them."""

    def close(self) -> None:
        """Detach."""


def throttle_refusal(procfs: str, sysfs: str) -> str:
    """Return why waits for limits cannot be timed here, and the fix; empty if they can. Attaches and detaches."""
    refusal = _native.tracer_refusal(procfs, sysfs)
    if refusal:
        return refusal
    try:
        _native.ThrottleTracer(sysfs, places=1).close()
    except OSError as error:
        return words_of(error)
    return ""


def open_program(procfs: str, sysfs: str) -> ThrottleProgram:
    """Load and attach, which takes 0.1 s.

    Raises:
        OSError: this host or this process's rights do not allow it.
    """
    refusal = _native.tracer_refusal(procfs, sysfs)
    if refusal:
        raise OSError(0, refusal)
    return _native.ThrottleTracer(sysfs, places=PLACES)


Members = Iterable[tuple[Group, Sequence[tuple[int, int]]]]
"""Groups, ancestors before descendants, with the devices of each, in the order of the table's rows."""


def _rows_of_places(members: Members, *, adds_up: bool) -> dict[Place, tuple[int, ...]]:
    """Rows of the table in which each place counts: the group's, and those of the groups above if counters add up."""
    of_path: dict[tuple[str, int, int], tuple[int, ...]] = {}
    found: dict[Place, tuple[int, ...]] = {}
    row = 0
    for group, devices in members:
        for device in devices:
            above = of_path.get((group.parent, *device), ()) if adds_up else ()
            found[group.number, *device] = of_path[group.path, *device] = (row, *above)
            row += 1
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Pairs:
    """Which rows of the program count in which rows of the table; both only ever grow at their end."""

    rows: Rows
    counted: int
    source: NDArray[np.intp]
    target: NDArray[np.intp]


class ThrottleWaits:
    """Attaches the programs once a group has a limit, in a thread, and adds what they count to the CGROUP table."""

    def __init__(self, open_program: Callable[[], ThrottleProgram], *, adds_up: bool) -> None:
        """Nothing is attached yet.

        Args:
            open_program: attaches; raises OSError.
            adds_up: whether the counters of a group include those of its descendants.
        """
        self._open = open_program
        self._adds_up = adds_up
        self._thread: BackgroundThread | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._program: ThrottleProgram | None = None
        self._pairs: _Pairs | None = None
        self.refusal = ""
        """Why waits cannot be timed, in one line; empty while they can, and before a group had a limit."""

    @property
    def cpu_ns(self) -> int:
        """CPU time spent on attaching."""
        return 0 if self._thread is None else self._thread.cpu_ns

    def start(self) -> None:
        """Attach in the background; once."""
        if self._thread is None:
            self._thread = BackgroundThread("throttle", self._attach)
            self._thread.start()

    def close(self) -> None:
        """Detach; may be called twice."""
        if self._thread is not None:
            self._thread.stop()
        with self._lock:
            self._closed = True
            program, self._program = self._program, None
        if program is not None:
            program.close()

    def add(self, table: Table, members: Callable[[], Members]) -> tuple[Table, Histograms | None]:
        """Return the table with the waits, and their histograms; both without them while nothing is attached."""
        program = self._program
        if program is None:
            return table, None
        rows, cells = program.read()
        pairs = self._paired(table.rows, rows, members)
        values = table.values.copy()
        values[:, _COLUMNS] = 0
        for column, counted in zip(_COLUMNS, (_IOS, _WAIT_NS), strict=True):
            np.add.at(values[:, column], pairs.target, rows[pairs.source, counted])
        return Table(CGROUP, table.rows, values), _histograms(table.rows, pairs, cells)

    def _paired(self, of: Rows, rows: NDArray[np.uint64], members: Callable[[], Members]) -> _Pairs:
        known = self._pairs
        if known is None or known.rows is not of or known.counted != len(rows):
            targets = _rows_of_places(members(), adds_up=self._adds_up)
            places = ((group, major, minor) for group, major, minor in rows[:, :_IOS].tolist())
            pairs = [(source, target) for source, place in enumerate(places) for target in targets.get(place, ())]
            both = np.array(pairs, np.intp).reshape(-1, 2)
            known = self._pairs = _Pairs(of, len(rows), both[:, 0], both[:, 1])
        return known

    def _attach(self, _: threading.Event) -> None:
        try:
            program = self._open()
        except OSError as error:
            self.refusal = words_of(error)
            return
        with self._lock:
            if not self._closed:
                self._program = program
                return
        program.close()


def _histograms(rows: Rows, pairs: _Pairs, cells: NDArray[np.uint64]) -> Histograms:
    """Cells by rows of the table: those of a row of the program once for each row it counts in."""
    of_cell = cells[:, 0].astype(np.intp)
    first = np.searchsorted(pairs.source, of_cell, "left")
    times = np.searchsorted(pairs.source, of_cell, "right") - first
    cell = np.repeat(np.arange(len(cells)), times)
    within = np.arange(len(cell)) - np.repeat(np.cumsum(times) - times, times)
    row = pairs.target[np.repeat(first, times) + within]
    return Histograms(
        THROTTLE_SCALE,
        rows,
        THROTTLE_SERIES,
        row.astype(np.uint32),
        np.zeros(len(row), np.uint8),
        cells[cell, 1].astype(np.uint16),
        cells[cell, 2],
    )
