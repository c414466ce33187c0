"""Readings of several loads at once as one, in which every row names its load."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.backend.outstanding import Outstanding
from engine.backend.protocol import Cells
from engine.events import Event
from engine.replacing import replace
from engine.running.counter_reader import (
    ACTIVE,
    LOGICAL_PEAKS,
    PATH_PEAKS,
    PATH_TARGET,
    PEAKS,
    LayoutReading,
)
from engine.running.status import LoadReading
from engine.text import safe_text

_MOST_SLOWEST = 16
"""The same number as for one load."""
_SLOW_TARGET, _SLOW_LATENCY = 0, 5
"""Positions in the raw table slow_load."""

Named = tuple[str, LoadReading]
"""A reading with the name of its load."""


def named(load: str, text: str) -> str:
    """As in "[victim] /dev/sdb"; the text alone where the load has no name."""
    return f"[{safe_text(load)}] {text}" if load else text


def named_event(load: str, event: Event) -> Event:
    """Say which load an event belongs to."""
    return replace(event, text=named(load, event.text), data={**event.data, "load_name": load}) if load else event


def named_outstanding(load: str, waits: Outstanding) -> Outstanding:
    """Say which load it belongs to."""
    return replace(waits, target=named(load, waits.target))


class GroupReadings:
    """Puts readings together; keys and names are the same objects as long as the same loads are read.

    A load that ended keeps its rows, at rest, until all have ended: the last sample has what each of them did.
    """

    def __init__(self) -> None:
        self._ended: dict[str, LoadReading] = {}
        """What is shown of loads once they have ended, by name."""
        self._of: tuple[tuple[str, ...], ...] = ()
        self._keys: tuple[str, ...] = ()
        self._names: tuple[str, ...] = ()

    def combined(self, read: Sequence[tuple[str, LoadReading | None]]) -> LoadReading | None:
        """Put together what each load gave, None where it has ended or not begun; None where all did."""
        if all(reading is None for _, reading in read):
            self._ended.clear()
            return None
        readings = [(name, shown) for name, reading in read if (shown := reading or self._ended.get(name)) is not None]
        self._ended.update((name, _at_rest(reading)) for name, reading in read if name and reading is not None)
        if len(readings) == 1 and not readings[0][0]:
            return readings[0][1]
        self._name_rows(readings)
        each = [reading for _, reading in readings]
        first_rows = np.cumsum([0, *(len(reading.keys) for reading in each)]).tolist()
        return LoadReading(
            self._keys,
            self._names,
            np.concatenate([reading.values for reading in each]),
            _cells([reading.cells for reading in each], first_rows),
            _slowest([reading.slowest for reading in each], first_rows),
            tuple(number for reading in each for number in reading.device_numbers),
            _layout(readings, first_rows),
        )

    def _name_rows(self, readings: Sequence[Named]) -> None:
        of = tuple(reading.keys for _, reading in readings)
        if of != self._of:
            self._of = of
            self._keys = tuple(key for keys in of for key in keys)
            self._names = tuple(named(load, name) for load, reading in readings for name in reading.names)


def _at_rest(reading: LoadReading) -> LoadReading:
    """Return what remains of a reading once its load has ended: the counters, and nothing that happened since."""
    values = reading.values.copy()
    values[:, [*PEAKS, ACTIVE]] = 0
    layout = reading.layout
    if layout is not None:
        layout = replace(layout, paths=layout.paths.copy(), logical=layout.logical.copy())
        layout.paths[:, PATH_PEAKS] = 0
        layout.logical[:, LOGICAL_PEAKS] = 0
    none = slice(0, 0)
    targets, directions, buckets, counts = reading.cells
    cells = (targets[none], directions[none], buckets[none], counts[none])
    return replace(reading, values=values, cells=cells, slowest=reading.slowest[none], layout=layout)


def _cells(parts: Sequence[Cells], first_rows: Sequence[int]) -> Cells:
    moved = [rows + np.uint32(first) for (rows, *_), first in zip(parts, first_rows, strict=False)]
    return (
        np.concatenate(moved),
        np.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] for part in parts]),
        np.concatenate([part[3] for part in parts]),
    )


def _slowest(parts: Sequence[NDArray[np.uint64]], first_rows: Sequence[int]) -> NDArray[np.uint64]:
    found = np.concatenate([_moved(part, _SLOW_TARGET, first) for part, first in zip(parts, first_rows, strict=False)])
    slowest_first = np.argsort(found[:, _SLOW_LATENCY])[::-1]
    return found[slowest_first[:_MOST_SLOWEST]]


def _moved(rows: NDArray[np.uint64], column: int, first: int) -> NDArray[np.uint64]:
    moved = rows.copy()
    moved[:, column] += np.uint64(first)
    return moved


def _layout(readings: Sequence[Named], first_rows: Sequence[int]) -> LayoutReading | None:
    layouts = [
        (load, reading.layout, first)
        for (load, reading), first in zip(readings, first_rows, strict=False)
        if reading.layout is not None
    ]
    if not layouts:
        return None
    with_logical = [(load, layout) for load, layout, _ in layouts if len(layout.logical)]
    return LayoutReading(
        tuple(key for _, layout, _ in layouts for key in layout.path_keys),
        tuple(named(load, name) for load, layout, _ in layouts for name in layout.path_names),
        np.concatenate([_moved(layout.paths, PATH_TARGET, first) for _, layout, first in layouts]),
        tuple(key for _, layout in with_logical for key in layout.logical_keys),
        np.concatenate([layout.logical for _, layout, _ in layouts]),
        tuple(named(load, name) for load, layout in with_logical for name in layout.logical_names),
    )
