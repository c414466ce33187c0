"""What a change of tunables did: equal windows before and after it, compared as two recordings are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Protocol

from msgspec import Struct

from collectors.compare.collected import CollectedIntervals
from collectors.compare.comparison import CompareOptions, Comparison, RowComparison, compare, wanted_fields
from collectors.compare.side import Side
from collectors.model import Frame, Histograms
from collectors.tables.nfs.subject import NFS_MOUNTS
from engine.events import Event, EventKind

MOST_SAMPLES = 30
"""Samples in each window."""
LEAST_SAMPLES = 3
"""Fewer are decided by a pause of the device."""
JOINED_NS = 2_000_000_000
"""Changes closer than this are one: a change that includes another restores that one first."""
TABLES = ("load_total", "disks", NFS_MOUNTS.table)
OPTIONS = CompareOptions(fields=("iops", "await_ms", "p99_ms", "execute_ms"))
_PARTS = {EventKind.TUNE, EventKind.KNOB, EventKind.LOAD}
"""Events that end a window: the figures are of something else then."""
_NAME = re.compile(r"[^\s,;]+")


class WindowInterval(Protocol):
    """One interval of a window."""

    @property
    def frame(self) -> Frame:
        """Its figures."""

    @property
    def histograms(self) -> Mapping[str, Histograms]:
        """Its latencies."""


Between = Callable[[int, int], Iterable[WindowInterval]]
"""Yields the intervals that lie within a range of wall time, oldest first."""


class EffectWindows(Struct, frozen=True):
    """Ranges of wall time around a change."""

    before_ns: int
    begun_ns: int
    """Begin of the first change that is compared as one with it."""
    changed_ns: int
    until_ns: int
    is_closed: bool
    """Whether something else was changed since, so that no further sample comes."""


class TuneEffect(Struct, frozen=True, eq=False):
    """A change with its samples, and the comparison once there are enough."""

    before: int
    after: int
    is_closed: bool
    comparison: Comparison | None = None
    named: frozenset[str] = frozenset()
    """Words of the event, by which its devices are found."""
    end_ns: int = 0
    """Wall time at the end of the last sample that was compared."""

    @property
    def is_final(self) -> bool:
        """Whether later samples change nothing."""
        return self.comparison is not None or self.is_closed or self.before < LEAST_SAMPLES

    @property
    def words(self) -> str:
        """Why there is no comparison; empty if there is one."""
        if self.comparison is not None:
            return ""
        if self.before < LEAST_SAMPLES:
            return f"no comparison: {self.before} samples before it"
        if self.is_closed:
            return f"no comparison: {self.after} samples until the next change"
        return f"waiting: {self.after} of {self.before} samples"

    @property
    def rows(self) -> tuple[RowComparison, ...]:
        """The load, then the devices and mounts that were changed; without any of them the busiest disk."""
        if self.comparison is None:
            return ()
        load = [row for row in self.comparison.rows if row.a.table == "load_total"]
        disks = [row for row in self.comparison.rows if row.a.table == "disks"]
        mounts = [row for row in self.comparison.rows if row.a.table == NFS_MOUNTS.table]
        ours = [row for row in (*mounts, *disks) if {row.a.name, row.a.key} & self.named]
        return (*load, *(ours or sorted(disks, key=_rate, reverse=True)[:1]))


def effect_windows(event: Event, events: Sequence[Event], start_ns: int, now_ns: int) -> EffectWindows:
    """Find the windows of a change: up to the event before and after it that changes what is measured.

    Args:
        event: of kind `tune`.
        events: all of the session.
        start_ns: wall time from which on there are intervals.
        now_ns: wall time shown; later events are ignored.
    """
    times = sorted(one.time_ns for one in events if one.kind in _PARTS and one.time_ns <= now_ns and one is not event)
    begun_ns = event.time_ns
    earlier = [time_ns for time_ns in times if time_ns <= event.time_ns]
    while earlier and begun_ns - earlier[-1] < JOINED_NS:
        begun_ns = earlier.pop()
    later = [time_ns for time_ns in times if time_ns > event.time_ns]
    before_ns = max(earlier[-1] if earlier else start_ns, start_ns)
    return EffectWindows(before_ns, begun_ns, event.time_ns, later[0] if later else now_ns, bool(later))


def tune_effect(event: Event, windows: EffectWindows, between: Between, interval_s: float) -> TuneEffect:
    """Collect both windows and compare them once the later one has as many samples as the earlier one."""
    reach_ns = int(MOST_SAMPLES * 1.5 * interval_s * 1e9)
    first_ns = max(windows.before_ns, windows.begun_ns - reach_ns)
    before = list(between(first_ns, windows.begun_ns))[-MOST_SAMPLES:]
    count = len(before)
    last_ns = min(windows.until_ns, windows.changed_ns + 2 * reach_ns)
    after = list(islice(between(windows.changed_ns, last_ns), count))
    if windows.is_closed and LEAST_SAMPLES <= len(after) < count:
        before = before[-len(after) :]
    if len(before) < LEAST_SAMPLES or len(after) < len(before):
        return TuneEffect(count, len(after), windows.is_closed)
    named = frozenset(_NAME.findall(event.text))
    comparison = compare(_side("before", before), _side("after", after), OPTIONS)
    return TuneEffect(len(before), len(after), windows.is_closed, comparison, named, after[-1].frame.time_ns)


def _side(text: str, intervals: Sequence[WindowInterval]) -> Side:
    collected = CollectedIntervals({table: wanted_fields(table, OPTIONS) for table in TABLES})
    for interval in intervals:
        collected.add(interval.frame, interval.histograms)
    assert collected.frame is not None, "not empty"
    return Side(
        text,
        "recording",
        collected.rows(growing=False),
        collected.intervals,
        collected.interval_s,
        intervals[0].frame.time_ns,
        intervals[-1].frame.time_ns,
        tier=collected.frame.topology.host.tier,
    )


def _rate(row: RowComparison) -> float:
    return next((field.b.mean for field in row.fields if field.field.id == "iops"), 0.0)
