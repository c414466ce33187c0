"""The recent history of every row, a longer one of the few charted rows, and the events of the session."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.model import Frame, FrameTable, Rows, Step
from collectors.reports.totals.cleared import ClearedCounters
from collectors.series import Series
from collectors.tables.block.all_disks import ALL_DISKS, TOTALS, total_disks
from engine.events import Event
from tui.history.gone_paths import GonePaths
from tui.history.intervals import IntervalHistory
from tui.history.row_rings import FEWEST_TICKS, MOST_TICKS, Ring
from tui.load.turn_intervals import TurnIntervals

if TYPE_CHECKING:
    from collectors.latency.history import LatencyHistory


MOST_EVENTS = 10_000


class EventHistory:
    """Events by time, bounded; filled by the feed thread and read by the screens."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._seen: set[tuple[int, str]] = set()
        self._version = 0

    @property
    def version(self) -> int:
        """Incremented with every change, so that a screen redraws only then."""
        return self._version

    def add(self, events: Iterable[Event]) -> None:
        """Add new events; a replay that passes a range again adds nothing."""
        with self._lock:
            new = [event for event in events if (event.time_ns, event.text) not in self._seen]
            if not new:
                return
            self._seen.update((event.time_ns, event.text) for event in new)
            self._events = sorted([*self._events, *new], key=lambda event: event.time_ns)
            for dropped in self._events[:-MOST_EVENTS]:
                self._seen.discard((dropped.time_ns, dropped.text))
            self._events = self._events[-MOST_EVENTS:]
            self._version += 1

    def all(self) -> list[Event]:
        """All events, oldest first; the list is never changed afterwards."""
        return self._events


MOST_FOLLOWED = 32
"""Rows with a longer history; the least recently used one is dropped first."""


class Followed:
    """Rings of one row each; a vanished row has gaps until it is back."""

    def __init__(self, budget_bytes: int) -> None:
        self._budget_bytes = budget_bytes
        self._rings: OrderedDict[tuple[str, str], Ring] = OrderedDict()

    def follow(self, table: str, key: str, past: Series) -> None:
        """Keep the history of a row from now on, starting with its short one."""
        ring = Ring(tuple(past.values), self._budget_bytes)
        rows = Rows((key,), (key,))
        for position, time_ns in enumerate(past.times_ns.tolist()):
            now = {field_id: values[position : position + 1] for field_id, values in past.values.items()}
            ring.add(time_ns, FrameTable(rows, now))
        self._rings[table, key] = ring
        if len(self._rings) > MOST_FOLLOWED:
            self._rings.popitem(last=False)

    def of(self, table: str, key: str) -> Ring | None:
        """Find the ring of a row, and mark it as used."""
        ring = self._rings.get((table, key))
        if ring is not None:
            self._rings.move_to_end((table, key))
        return ring

    def add(self, time_ns: int, tables: Mapping[str, FrameTable]) -> None:
        """Add one frame."""
        for (name, key), ring in self._rings.items():
            table = tables.get(name)
            row = None if table is None else table.rows.positions.get(key)
            ring.add(time_ns, FrameTable(ring.rows, {} if row is None or table is None else _one(table, row)))


def _one(table: FrameTable, row: int) -> Mapping[str, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    return {field_id: column[row : row + 1] for field_id, column in table.columns.items()}


__all__ = ["BUDGET_BYTES", "FEWEST_TICKS", "MOST_TICKS", "History"]

BUDGET_BYTES = 24 << 20
"""Size of one table's ring: 46 samples of 19,200 paths, an hour of 200."""


@functools.cache
def kept_fields() -> Mapping[str, tuple[str, ...]]:
    """Fields kept per frame table."""
    from collectors.all_subjects import SUBJECTS  # noqa: PLC0415 (most can wait until the first screen is drawn)

    return {**{subject.table: subject.charts for subject in SUBJECTS if subject.charts}, ALL_DISKS: TOTALS}


class Filling(Struct, frozen=True):
    """Another past that is being read, oldest step first."""

    rings: Mapping[str, Ring]
    latencies: LatencyHistory

    def add(self, step: Step, frame: Frame) -> None:
        """Add a step and its frame."""
        _put(self.rings, frame.time_ns, _tables(frame))
        self.latencies.add(step)


class History:
    """The history of disks and load; filled by the feed thread for every frame, drawn or not."""

    def __init__(self, budget_bytes: int = BUDGET_BYTES) -> None:
        self._lock = threading.Lock()
        self._budget_bytes = budget_bytes
        self._rings: Mapping[str, Ring] = {}
        """Rings by table; each is made when it is first used."""
        self._followed = Followed(budget_bytes)
        self.totals = ClearedCounters()
        """Newest sample, and those at which counters were cleared; has its own lock."""
        self.gone_paths = GonePaths()
        """Paths that vanished; it sees every frame, also when the history is replaced."""
        self.load = TurnIntervals()
        """Load intervals around knob turns; has its own lock."""
        self.intervals = IntervalHistory()
        """Newest intervals of a live host with all their figures; has its own lock."""
        self._latencies: LatencyHistory | None = None

    @property
    def latencies(self) -> LatencyHistory:
        """Histograms, peaks and slow I/Os of the same time; has its own lock."""
        with self._lock:
            if self._latencies is None:
                from collectors.latency.history import LatencyHistory  # noqa: PLC0415 (it can wait until the first screen is drawn)

                self._latencies = LatencyHistory()
            return self._latencies

    def _empty(self) -> dict[str, Ring]:
        return {table: Ring(fields, self._budget_bytes) for table, fields in kept_fields().items()}

    def _made_rings(self) -> Mapping[str, Ring]:
        if not self._rings:
            self._rings = self._empty()
        return self._rings

    def add(self, frame: Frame) -> None:
        """Add one frame."""
        tables = _tables(frame)
        with self._lock:
            _put(self._made_rings(), frame.time_ns, tables)
            self._followed.add(frame.time_ns, tables)

    def filling(self) -> Filling:
        """Begin another past, which `take` puts in place."""
        return Filling(self._empty(), self.latencies.emptied())

    def take(self, filling: Filling) -> None:
        """Replace the history by another past."""
        self.latencies.take_over(filling.latencies)
        with self._lock:
            self._rings = filling.rings
            self._followed = Followed(self._budget_bytes)

    @property
    def forgotten_ns(self) -> int:
        """Newest time before which figures were dropped to stay within the budget; 0 if none were."""
        with self._lock:
            dropped = max((ring.forgotten_ns for ring in self._rings.values()), default=0)
        return max(dropped, self.latencies.forgotten_ns)

    def has_rows_of(self, frame: Frame) -> bool:
        """Whether every row of a frame is known, also one that vanished later."""
        with self._lock:
            kept = ((self._rings[name].rows, table.rows) for name, table in frame.tables.items() if name in self._rings)
            return all(rows is held or rows.positions.keys() <= held.positions.keys() for held, rows in kept)

    def series(self, table: str, key: str, end_ns: int | None = None, span_ns: int | None = None) -> Series | None:
        """Copy the history of one row up to a time, at most `span_ns` of it; None if the row is unknown.

        The kept intervals still have a row that vanished, and times before those of the charts.
        """
        with self._lock:
            ring = self._made_rings()[table]
            if ring.is_short:
                self._follow(table, key)
                ring = self._followed.of(table, key) or ring
            series = ring.series(key, end_ns, span_ns)
        if end_ns is None or (series is not None and len(series)):
            return series
        return self.intervals.series(
            table, key, kept_fields()[table], 0 if span_ns is None else end_ns - span_ns, end_ns
        )

    def recent(
        self, table: str, keys: Sequence[str], field_id: str, end_ns: int, span_ns: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Copy the last `span_ns` of a field of some rows up to a time: times, and values of shape (times, keys)."""
        with self._lock:
            return self._made_rings()[table].recent(keys, field_id, end_ns, span_ns)

    def _follow(self, table: str, key: str) -> None:
        if self._followed.of(table, key) is None:
            past = self._made_rings()[table].series(key)
            if past is not None:
                self._followed.follow(table, key, past)


def _tables(frame: Frame) -> dict[str, FrameTable]:
    tables = dict(frame.tables)
    if "disks" in tables:
        tables[ALL_DISKS] = total_disks(tables["disks"], frame.topology)
    return tables


def _put(rings: Mapping[str, Ring], time_ns: int, tables: Mapping[str, FrameTable]) -> None:
    for name, ring in rings.items():
        if name in tables:
            ring.add(time_ns, tables[name])
