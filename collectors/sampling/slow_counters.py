"""Counters too expensive for every tick, read by a background thread as often as a budget allows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from msgspec import Struct

from collectors.graph import Graph
from collectors.model import Table
from collectors.sampling.reading import BackgroundThread, Reading
from engine.events import Event

FIRST_POLL_S = 0.1
"""Interval of checking for the device graph until there is something to count in it."""
FIRST_POLLS = 50
"""Most such checks: after them a host without anything to count is asked at the pace, too."""


class SlowPace(Struct, frozen=True):
    """Rate of reading: limited by a share of one core and by the response time of the device."""

    least_s: float
    """Shortest pause between readings."""
    share: float
    """Largest share of time that reading may take, by CPU time and by the clock."""
    longest_s: float

    def pause_s(self, cost_s: float) -> float:
        """Pause after a reading of this cost."""
        return min(max(self.least_s, cost_s / self.share), self.longest_s)


class SlowCounters:
    """Returns the table of the last reading at every tick; the same object until the next reading.

    `take` reads a table for a graph, None if there is nothing to count; it may block, as a driver may query its
    firmware. `events_of` compares two tables of one graph and yields events.
    """

    def __init__(
        self,
        name: str,
        graph: Callable[[], Graph],
        take: Callable[[Graph], Table | None],
        pace: SlowPace,
        events_of: Callable[[Table, Table, Graph], Iterable[Event]] = lambda _before, _now, _graph: (),
    ) -> None:
        self._graph = graph
        self._take = take
        self._pace = pace
        self._events_of = events_of
        self._table: Table | None = None
        self._events: list[Event] = []
        self._lock = threading.Lock()
        self._thread = BackgroundThread(name, self._run)

    def read(self) -> Reading:
        """Return the last table and the events since the previous call.

        Raises:
            RuntimeError: the thread has failed.
        """
        self._thread.check()
        with self._lock:
            table, events, self._events = self._table, tuple(self._events), []
        return Reading({} if table is None else {table.schema.name: table}, events=events)

    def close(self) -> None:
        """Stop the thread; one that is blocked in a driver is abandoned."""
        self._thread.stop()

    def _run(self, stop: threading.Event) -> None:
        pause_s, polls_left = 0.0, FIRST_POLLS
        while not stop.wait(pause_s):
            graph = self._graph()
            started_s = time.monotonic()
            table = self._take(graph)
            taken_s = time.monotonic() - started_s
            self._publish(table, graph)
            polls_left = max(polls_left - 1, 0) if table is None and not graph.luns else 0
            pause_s = FIRST_POLL_S if polls_left else self._pace.pause_s(taken_s)

    def _publish(self, table: Table | None, graph: Graph) -> None:
        before = self._table
        events = [] if before is None or table is None else list(self._events_of(before, table, graph))
        with self._lock:
            self._table = table
            self._events += events
