"""Waits for the limits of control groups, timed by programs on the kernel's block throttle while any group has a limit.

The kernel holds such I/Os in blk_throtl_bio() before any event of the block layer: no other counter has this time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.model import Histograms, Rows, Table
from collectors.sampling.attached import FIRST_PAUSE_S, AttachedProgram
from collectors.sampling.programs import ThrottleProgram
from collectors.tables.cgroup.schema import CGROUP, THROTTLE_SCALE, THROTTLE_SERIES, THROTTLED
from collectors.tables.cgroup.tree import Group
from engine.errors import words_of

GroupDevice = tuple[int, int, int]
"""Number of the group, major and minor of the device."""

_IOS, _WAIT_NS = 3, 4
_COLUMNS = [CGROUP.index(name) for name in THROTTLED]


Members = Iterable[tuple[Group, Sequence[tuple[int, int]]]]
"""Groups, ancestors before descendants, with the devices of each, in the order of the table's rows."""


def _rows_of_pairs(members: Members, *, adds_up: bool) -> dict[GroupDevice, tuple[int, ...]]:
    """Rows of the table in which each pair counts: the group's, and those of the groups above if counters add up."""
    of_path: dict[tuple[str, int, int], tuple[int, ...]] = {}
    found: dict[GroupDevice, tuple[int, ...]] = {}
    row = 0
    for group, devices in members:
        for device in devices:
            above = of_path.get((group.parent, *device), ()) if adds_up else ()
            found[group.number, *device] = of_path[group.path, *device] = (row, *above)
            row += 1
    return found


class _Pairs(Struct, frozen=True, eq=False):
    """Which rows of the program count in which rows of the table; both only ever grow at their end."""

    rows: Rows
    counted: int
    source: NDArray[np.intp]
    target: NDArray[np.intp]


class ThrottleWaits:
    """Attaches the programs once a group has a limit, in a thread, and adds what they count to the CGROUP table."""

    def __init__(
        self, open_program: Callable[[], ThrottleProgram], *, adds_up: bool, first_pause_s: float = FIRST_PAUSE_S
    ) -> None:
        """Nothing is attached yet.

        Args:
            open_program: attaches; raises OSError or LunscopeError.
            adds_up: whether the counters of a group include those of its descendants.
            first_pause_s: pause after the first failure.
        """
        self._adds_up = adds_up
        self._attached = AttachedProgram("throttle", open_program, first_pause_s)
        self._pairs: _Pairs | None = None

    @property
    def refusal(self) -> str:
        """Why waits cannot be timed, in one line; empty while they can, and before a group had a limit."""
        return self._attached.refusal

    def start(self) -> None:
        """Attach in the background; once."""
        self._attached.start()

    def close(self) -> None:
        """Detach; may be called twice."""
        self._attached.close()

    def add(self, table: Table, members: Callable[[], Members]) -> tuple[Table, Histograms | None]:
        """Return the table with the waits, and their histograms; both without them while nothing is attached."""
        program = self._attached.program
        if program is None:
            return table, None
        try:
            rows, cells = program.read()
        except OSError as error:
            self._pairs = None
            self._attached.lose(words_of(error))
            return table, None
        pairs = self._paired(table.rows, rows, members)
        values = table.values.copy()
        values[:, _COLUMNS] = 0
        for column, counted in zip(_COLUMNS, (_IOS, _WAIT_NS), strict=True):
            np.add.at(values[:, column], pairs.target, rows[pairs.source, counted])
        return Table(CGROUP, table.rows, values), _histograms(table.rows, pairs, cells)

    def _paired(self, of: Rows, rows: NDArray[np.uint64], members: Callable[[], Members]) -> _Pairs:
        known = self._pairs
        if known is None or known.rows is not of or known.counted != len(rows):
            targets = _rows_of_pairs(members(), adds_up=self._adds_up)
            pairs_read = ((group, major, minor) for group, major, minor in rows[:, :_IOS].tolist())
            pairs = [(source, target) for source, pair in enumerate(pairs_read) for target in targets.get(pair, ())]
            both = np.array(pairs, np.intp).reshape(-1, 2)
            known = self._pairs = _Pairs(of, len(rows), both[:, 0], both[:, 1])
        return known


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
