"""History of latency histograms: recent ones of every row in bounded memory, an hour of one subject."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from msgspec import Struct, field

from collectors.latency.interval_ios import IntervalIos, IoReader, driven_devices, slowest, slowest_matched
from collectors.latency.slow_calls import NO_CALLS, SlowCall, SlowCalls, slow_calls, slowest_calls
from collectors.latency.slow_ios import SlowIo
from collectors.latency.subjects import SOURCES, LatencySubject
from collectors.latency.summary import Peak, largest, peaks_of
from collectors.latency.ticks import (
    MOST_TICKS,
    LatencyTick,
    LatencyTicks,
    LatencyTrack,
    PackedPeaks,
    pack_peaks,
    row_peaks,
)
from collectors.latency.waterfall import MatchedIo
from collectors.model import Histograms, HistogramScale, Rows, Step
from engine import _native

BUDGET_BYTES = 6 << 20
"""Memory for the histograms of all rows: a quarter of an hour of a hundred busy disks, a minute of many thousand."""
_TICK_BYTES = 600
"""What a tick takes beside its bytes."""


class _KeptTick(Struct, frozen=True, eq=False):
    """A tick in little memory."""

    time_ns: int
    span_ns: int
    cells: PackedCells
    peaks: PackedPeaks

    @property
    def size_bytes(self) -> int:
        return self.cells.size_bytes + len(self.peaks.data) + _TICK_BYTES

    @property
    def tick(self) -> LatencyTick:
        return LatencyTick(self.time_ns, self.span_ns, self.cells.histograms, self.peaks.peaks)


class _Source(Struct):
    """Stored ticks of one set of histograms."""

    newest: Histograms
    ticks: deque[_KeptTick] = field(default_factory=deque)
    size_bytes: int = 0
    forgotten: bool = False
    """Whether old ticks were dropped to stay within the budget, so that another subject has a shorter history."""

    def add(self, tick: LatencyTick, budget_bytes: int) -> None:
        self.newest = tick.histograms
        kept = _KeptTick(tick.time_ns, tick.span_ns, pack_cells(tick.histograms), pack_peaks(tick.peaks))
        self.ticks.append(kept)
        self.size_bytes += kept.size_bytes
        while len(self.ticks) > 1 and (self.size_bytes > budget_bytes or len(self.ticks) > MOST_TICKS):
            self.size_bytes -= self.ticks.popleft().size_bytes
            self.forgotten = True


class _Moment(Struct, frozen=True):
    """Data of one tick besides histograms."""

    time_ns: int
    peaks: tuple[Peak, ...]
    ios: IntervalIos | None
    """None if the interval has no length."""
    calls: SlowCalls


class LatencyHistory:
    """Filled by one thread with every sample of a source, read by any thread; the reader chooses the subject."""

    def __init__(self, budget_bytes: int = BUDGET_BYTES) -> None:
        self._lock = threading.Lock()
        self._budget_bytes = budget_bytes
        self._sources: dict[str, _Source] = {}
        self._moments: deque[_Moment] = deque(maxlen=MOST_TICKS)
        self._ios = IoReader()
        self._subject: LatencySubject | None = None
        self._track: LatencyTrack | None = None
        self._lacks_past = False

    def add(self, step: Step) -> None:
        """Add the histograms of one sample; an interval of unknown length is a gap."""
        kept = self._kept_of(step)
        with self._lock:
            self._take(*kept)

    def emptied(self) -> LatencyHistory:
        """Make an empty one of the same subject, to be filled with another past."""
        with self._lock:
            other = LatencyHistory(self._budget_bytes)
            other._subject = self._subject
            return other

    def take_over(self, other: LatencyHistory) -> None:
        """Replace the history by that of another, which is not used any more; the subject stays."""
        with self._lock:
            if other._subject != self._subject:
                other._restart_track(self._subject)
            self._sources, self._moments, self._track = other._sources, other._moments, other._track
            self._ios = other._ios
            self._lacks_past = False

    @property
    def lacks_past(self) -> bool:
        """Whether old ticks of the subject were dropped while another was followed."""
        return self._lacks_past

    @property
    def forgotten_ns(self) -> int:
        """Newest time before which ticks were dropped to stay within the budget; 0 if none were."""
        with self._lock:
            return max((source.ticks[0].time_ns for source in self._sources.values() if source.forgotten), default=0)

    def follow(self, subject: LatencySubject) -> bool:
        """Follow this subject from now on; return whether its history is as long as that of all rows."""
        with self._lock:
            if subject == self._subject:
                return True
            self._restart_track(subject)
            source = self._sources.get(subject.source)
            self._lacks_past = source is not None and source.forgotten
            return not self._lacks_past

    def ticks(self) -> LatencyTicks | None:
        """Return the history of the followed subject; None while there is none."""
        with self._lock:
            return None if self._track is None else self._track.view()

    def offered(self) -> Mapping[str, Histograms]:
        """Newest histograms by source: the subjects to choose from."""
        with self._lock:
            return {name: source.newest for name, source in self._sources.items()}

    def peaks(self, start_ns: int, end_ns: int, most: int) -> list[Peak]:
        """Return the largest peaks of a time range over all disks and targets, the largest first."""
        moments = self._moments_between(start_ns, end_ns)
        return largest((peak for moment in moments for peak in moment.peaks), most)

    def slow_ios(self, start_ns: int, end_ns: int, most: int, subject: LatencySubject | None = None) -> list[SlowIo]:
        """Return the slowest I/Os of a time range that the kernel traced, the slowest first.

        For a subject only those on its devices; for the load all I/Os on the devices it drove then, of any process.
        """
        return slowest(self._ios_between(start_ns, end_ns), most, subject)

    def slow_calls(
        self, start_ns: int, end_ns: int, most: int, subject: LatencySubject | None = None
    ) -> list[SlowCall]:
        """Return the slowest NFS calls of a time range, the slowest first: of a subject, or of all mounts."""
        return slowest_calls((each.calls for each in self._moments_between(start_ns, end_ns)), most, subject)

    def load_numbers(self, start_ns: int, end_ns: int) -> set[tuple[int, int]]:
        """Return the numbers of the devices that the load drove in a time range."""
        return driven_devices(self._ios_between(start_ns, end_ns))

    def matched_ios(self, start_ns: int, end_ns: int, most: int) -> list[MatchedIo]:
        """Return the slowest I/Os of the load that the kernel traced too, the slowest first."""
        return slowest_matched(self._ios_between(start_ns, end_ns), most)

    def _ios_between(self, start_ns: int, end_ns: int) -> list[IntervalIos]:
        return [each.ios for each in self._moments_between(start_ns, end_ns) if each.ios is not None]

    def _moments_between(self, start_ns: int, end_ns: int) -> list[_Moment]:
        with self._lock:
            return [moment for moment in self._moments if start_ns < moment.time_ns <= end_ns]

    def _kept_of(self, step: Step) -> tuple[dict[str, LatencyTick], _Moment]:
        """Select the data of a step to store; called only by the filling thread."""
        ticks = ticks_of(step)
        peaks = tuple(peak for name, tick in ticks.items() for peak in peaks_of(tick, name))
        ios = self._ios.read(step.current) if ticks else None
        return ticks, _Moment(step.current.time_ns, peaks, ios, slow_calls(step.current) if ticks else NO_CALLS)

    def _take(self, ticks: Mapping[str, LatencyTick], moment: _Moment) -> None:
        self._moments.append(moment)
        for name, tick in ticks.items():
            source = self._sources.setdefault(name, _Source(tick.histograms))
            source.add(tick, self._budget_bytes)
            if self._subject is not None and name == self._subject.source:
                self._follow(tick)

    def _restart_track(self, subject: LatencySubject | None) -> None:
        self._subject, self._track = subject, None
        source = None if subject is None else self._sources.get(subject.source)
        for kept in source.ticks if source is not None else ():
            self._follow(kept.tick)

    def _follow(self, tick: LatencyTick) -> None:
        assert self._subject is not None, "asked only with one"
        cells = tick.histograms
        if self._track is None or (self._track.scale, self._track.series) != (cells.scale, cells.series):
            self._track = LatencyTrack(self._subject, cells.scale, cells.series)
        self._track.add(tick)


def ticks_of(step: Step) -> dict[str, LatencyTick]:
    """Histograms and peaks of a step by source; none if the interval has no length."""
    sample, previous = step.current, step.previous
    if previous is None or sample.monotonic_ns <= previous.monotonic_ns:
        return {}
    span_ns = sample.monotonic_ns - previous.monotonic_ns
    return {
        name: LatencyTick(sample.time_ns, span_ns, histograms, row_peaks(name, sample.tables.get(name)))
        for name, histograms in sample.histograms.items()
        if name in SOURCES
    }


_MOST_AT_ONCE = 1 << 21
"""Cells that the encoder takes."""
_OVERHEAD_BYTES = 200
"""What an object and its bytes take beside the cells."""


class PackedCells(Struct, frozen=True, eq=False):
    """Histograms as a recording stores them: a byte per cell as a rule, in place of 15."""

    scale: HistogramScale
    rows: Rows
    series: tuple[str, ...]
    data: tuple[bytes, ...]

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, without its rows."""
        return sum(map(len, self.data)) + _OVERHEAD_BYTES

    @property
    def histograms(self) -> Histograms:
        """The histograms, their cells in the order of row, series and bucket."""
        parts = zip(*map(_native.decode_cells, self.data), strict=True)
        row, series, bucket, count = (part[0] if len(part) == 1 else np.concatenate(part) for part in parts)
        return Histograms(self.scale, self.rows, self.series, row, series, bucket, count)


@lru_cache(maxsize=8)
def pack_cells(histograms: Histograms) -> PackedCells:
    """Pack histograms; results for the newest ones are kept, so that two histories have the same object."""
    arrays = histograms.row, histograms.series_index, histograms.bucket, histograms.count
    row, series, bucket, count = map(np.ascontiguousarray, arrays)
    parts = [slice(first, first + _MOST_AT_ONCE) for first in range(0, max(1, len(row)), _MOST_AT_ONCE)]
    data = tuple(_native.encode_cells(row[part], series[part], bucket[part], count[part]) for part in parts)
    return PackedCells(histograms.scale, histograms.rows, histograms.series, data)
