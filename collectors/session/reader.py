"""Random access to the samples of a session file, also while it is being written."""

from __future__ import annotations

import statistics
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path
from types import TracebackType
from typing import Self

from collectors.model import Sample, Step
from collectors.session.checked_rows import DamageLog, RecordedEvents, StoredTick, TickTable
from collectors.session.database import Database
from collectors.session.decoder import Decoder, Moment, ObjectReader, UnreadableError
from collectors.session.format import MAX_TICK_CELLS, DamageError
from collectors.session.time_format import clock_text
from engine.errors import UsageError
from engine.events import Event

_INTERVALS_TRIED = 16


class TickTimeline:
    """Lookup of ticks by time, skipping damaged ones; `first` is readable."""

    def __init__(self, ticks: TickTable, first: int) -> None:
        self._ticks = ticks
        self.first = first
        self.start_ns = ticks.get(first).time_ns

    def last(self) -> StoredTick:
        """Return the last stored tick."""
        return self._probe(self.first, self._ticks.count() - 1, self._ticks.count() - 1) or self._ticks.get(self.first)

    def at(self, time_ns: int) -> int:
        """Return the last stored tick at or before a wall time, the first of all if there is none.

        If the wall clock was set back, a time occurs twice; this returns one of them.
        """
        low, high = self.first, self._ticks.count() - 1
        while low < high:
            probe = self._probe(low, (low + high + 1) // 2, high)
            if probe is None:
                break
            if probe.time_ns <= time_ns:
                low = probe.tick
            else:
                high = probe.tick - 1
        return low

    def interval_s(self) -> float:
        """Usual time between the first ticks, in seconds; 1 where there is only one."""
        times = []
        for tick in range(self.first, min(self.first + _INTERVALS_TRIED, self._ticks.count())):
            try:
                times.append(self._ticks.get(tick).monotonic_ns)
            except DamageError:
                break
        steps = [after - before for before, after in pairwise(times) if after > before]
        return statistics.median(steps) / 1e9 if steps else 1.0

    def _probe(self, above: int, middle: int, high: int) -> StoredTick | None:
        """Return a stored tick above one and up to another, near the middle."""
        for tick in chain(range(middle, above, -1), range(middle + 1, high + 1)):
            try:
                return self._ticks.get(tick)
            except DamageError:
                continue
        return None


_MOMENTS_KEPT = 4
_LONGEST_INTERVAL_S = 86_400
_SUSPEND_NS = 5 * 10**9
_STALE_NS = 60 * 10**9
"""The recorder of an unclosed file is assumed to have ended after this time and ten intervals without a tick."""


class SessionReader:
    """Samples of one file by index, which counts from 0 and includes damaged ones; thread-safe.

    Raises:
        LunscopeError: the file does not exist, is no session, has a newer version, or cannot be read at all.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._database = Database(self.path)
        self._objects = ObjectReader(self._database)
        header = self._objects.header()
        clock_ns, interval_s = header.get("clock_ns"), header.get("interval_s")
        self._ticks = TickTable(self._database, clock_ns if type(clock_ns) is int else 0)
        self._events = RecordedEvents(self._database)
        self._decoder = Decoder(self._ticks, self._objects, self._events.at)
        self._damage = DamageLog(self._ticks)
        self._kept: OrderedDict[int, Moment] = OrderedDict()
        try:
            self._timeline = TickTimeline(self._ticks, self._find_first())
        except BaseException:
            self._database.close()
            raise
        is_stored = isinstance(interval_s, float) and 0 < interval_s < _LONGEST_INTERVAL_S
        self.interval_s: float = float(interval_s or 0) if is_stored else self._timeline.interval_s()
        """Nominal time between samples in seconds; measured if not stored in the file."""

    def __len__(self) -> int:
        """Index after the last; grows while the file is being written."""
        with self._lock:
            return self._ticks.count()

    @property
    def first(self) -> int:
        """Index of the first sample that can be read."""
        return self._timeline.first

    @property
    def start_ns(self) -> int:
        """Wall time of the first sample that can be read."""
        return self._timeline.start_ns

    @property
    def end_ns(self) -> int:
        """Wall time of the last sample; grows while the file is being written."""
        with self._lock:
            return self._timeline.last().time_ns

    @property
    def complete(self) -> bool:
        """Whether the file no longer grows: it was closed, or its recorder has ended."""
        with self._lock:
            idle_ns = time.time_ns() - self.end_ns
            return self._objects.ended() or idle_ns > max(_STALE_NS, 10**10 * self.interval_s)

    @property
    def notice(self) -> str:
        """Notice about missing parts of the file read so far; empty if none.

        The first time it checks the structure of a small file, which takes up to 0.1 s.
        """
        with self._lock:
            parts = [part for part in (self._ending(), self.damage_read) if part]
            if self._database.damage and not any("damaged" in part for part in parts):
                parts.append(f"damaged: what was read is sound, but not all of the file is ({self._database.damage})")
            return "; ".join(parts)

    @property
    def damage_read(self) -> str:
        """Damage that reading has come by so far; empty if none."""
        with self._lock:
            return "; ".join(filter(None, (self._damage.notice(), self._events.notice())))

    def sample_at(self, index: int) -> Sample | None:
        """Return a sample, None if it cannot be read.

        Raises:
            IndexError: the file has no such index.
        """
        moment = self._moment(index)
        return None if moment is None else moment.sample

    def step_at(self, index: int) -> Step | None:
        """Return a sample with its predecessor, None if it cannot be read.

        Raises:
            IndexError: the file has no such index.
        """
        with self._lock:
            before = self._moment(index - 1) if index > 0 else None
            moment = self._moment(index)
            if moment is None:
                return None
            if before is None or moment.gap or _slept(before.sample, moment.sample):
                return Step(None, moment.sample)
            return Step(before.sample, moment.sample)

    def steps(self, first: int, last: int) -> Iterator[Step]:
        """All readable steps of a range, both ends included; one at a time in memory."""
        for index in range(max(first, self.first), min(last, len(self) - 1) + 1):
            step = self.step_at(index)
            if step is not None:
                yield step

    def times_at(self, index: int) -> tuple[int, int] | None:
        """Wall and monotonic time of a sample, None where they cannot be read."""
        with self._lock:
            try:
                stored = self._ticks.get(index)
            except DamageError:
                return None
            return stored.time_ns, stored.monotonic_ns

    def index_at(self, time_ns: int) -> int:
        """Return the last sample at or before a wall time, the first of all if there is none."""
        with self._lock:
            return self._timeline.at(time_ns)

    def events(self) -> list[Event]:
        """All events so far, by time."""
        with self._lock:
            return self._events.all()

    def close(self) -> None:
        """Release the file; may be called twice."""
        with self._lock:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ending(self) -> str:
        if self._ticks.cut_off:
            return f"damaged: cut off after {clock_text(self.end_ns)}, the rest is lost"
        if self._objects.ended():
            return ""
        return self._database.notice or (_UNCLOSED if self.complete else "")

    def _moment(self, index: int) -> Moment | None:
        with self._lock:
            if index in self._kept:
                return self._kept[index]
            if not 0 <= index < self._ticks.count():
                raise IndexError(index)
            if self._damage.covers(index):
                return None
            try:
                moment = self._decoder.moment(index)
            except UnreadableError as error:
                self._damage.add(error.culprit)
                return None
            self._kept[index] = moment
            while len(self._kept) > _MOMENTS_KEPT or (len(self._kept) > 2 and self._cells() > MAX_TICK_CELLS):
                self._kept.popitem(last=False)
            return moment

    def _cells(self) -> int:
        """Count the numbers in the cached samples."""
        return sum(table.values.size for moment in self._kept.values() for table in moment.sample.tables.values())

    def _find_first(self) -> int:
        index, count = 0, self._ticks.count()
        if count == 0:
            why = f" ({self._database.notice})" if self._database.notice else ""
            raise UsageError(f"{self.path}: holds no samples{why}; record again")
        while index < count:
            if self._moment(index) is not None:
                return index
            index = max(index + 1, self._damage.past(index))
        raise UsageError(f"{self.path}: damaged, no sample of it can be read; use another copy")


_UNCLOSED = "not closed by its recorder: at most the last tick is missing"


def _slept(before: Sample, after: Sample) -> bool:
    """Whether the host was suspended in between: the monotonic clock stops then, the wall clock does not."""
    return (after.time_ns - before.time_ns) - (after.monotonic_ns - before.monotonic_ns) > _SUSPEND_NS
