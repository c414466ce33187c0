"""What was seen of a live host, summed up in at most ten lines when its screens are left."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.exact.losses import loss_words
from collectors.field import Unit
from collectors.model import Frame, FrameTable, Rows
from collectors.paths.event_groups import event_groups
from collectors.reports.run_events import KINDS
from collectors.session.time_format import clock_text
from engine.events import Event
from tui.app_input import Recording
from tui.text.format import format_quantity, span_text
from tui.text.safe import disk_labels, fit, width_of

_Values = NDArray[np.float64]

MOST_LINES, COLUMNS = 10, 80
MOST_DISKS, MOST_PATHS = 3, 4
_HEAD_CELLS, _NAME_CELLS = 10, 18
_HEAT, _IOS, _LATENCY, _BUSY, _P99, _PEAK = range(6)


class WatchedDisk(Struct, frozen=True):
    """A disk over the whole time; NaN where a figure was never known."""

    key: str
    name: str
    await_ms: float
    p99_ms: float
    """Largest 99th percentile of an interval."""
    peak_ms: float
    busy_pct: float


class Watched:
    """Sums over the frames of a live host; filled by the feed's thread, read when that has ended."""

    def __init__(self) -> None:
        self.intervals = self.gaps = 0
        self.seconds = 0.0
        self.last: Frame | None = None
        self._rows = Rows((), ())
        self._sums = np.zeros((6, 0))
        self._gone: dict[str, tuple[str, _Values]] = {}

    def add(self, frame: Frame) -> None:
        """Add one frame."""
        if math.isfinite(frame.elapsed_s):
            self.intervals += 1
            self.seconds += frame.elapsed_s
            disks = frame.tables.get("disks")
            if disks is not None:
                self._add_disks(disks, frame.elapsed_s)
        elif self.last is not None:
            self.gaps += 1
        self.last = frame

    def hottest(self) -> list[WatchedDisk]:
        """Find the disks that were hottest over the whole time, hottest first; none without I/O."""
        all_disks = [*zip(self._rows.keys, self._rows.names, self._sums.T, strict=True)]
        all_disks += [(key, name, sums) for key, (name, sums) in self._gone.items()]
        active = [disk for disk in all_disks if disk[2][_IOS] > 0]
        active.sort(key=lambda disk: -disk[2][_HEAT])
        return [self._disk(*disk) for disk in active[:MOST_DISKS]]

    def _disk(self, key: str, name: str, sums: _Values) -> WatchedDisk:
        await_ms, busy_pct = float(sums[_LATENCY] / sums[_IOS]), float(sums[_BUSY] / self.seconds)
        return WatchedDisk(key, name, await_ms, float(sums[_P99]), float(sums[_PEAK]), busy_pct)

    def _add_disks(self, disks: FrameTable, elapsed_s: float) -> None:
        if disks.rows is not self._rows:
            self._take_rows(disks.rows)
        ios = _known(disks, "iops") * elapsed_s
        self._sums[_HEAT] += _known(disks, "heat") * elapsed_s
        self._sums[_BUSY] += _known(disks, "busy_pct") * elapsed_s
        self._sums[_IOS] += ios
        self._sums[_LATENCY] += _known(disks, "await_ms") * ios
        for row, field_id in ((_P99, "p99_ms"), (_PEAK, "max_ms")):
            np.fmax(self._sums[row], disks.columns.get(field_id, np.nan), out=self._sums[row])

    def _take_rows(self, rows: Rows) -> None:
        """Go on with other rows; those that are gone keep their sums, and go on with them when they are back."""
        names = dict(zip(self._rows.keys, self._rows.names, strict=True))
        self._gone |= {key: (names[key], self._sums[:, row]) for key, row in self._rows.positions.items()}
        fresh = np.array([0.0, 0.0, 0.0, 0.0, np.nan, np.nan])
        columns = [self._gone.pop(key, ("", fresh))[1] for key in rows.keys]
        self._gone = {key: (name, sums) for key, (name, sums) in self._gone.items() if sums[_IOS] > 0}
        self._rows, self._sums = rows, np.column_stack(columns) if columns else np.zeros((6, 0))


def _known(disks: FrameTable, field_id: str) -> _Values:
    column = disks.columns.get(field_id)
    return np.zeros(len(disks.rows)) if column is None else np.nan_to_num(column)


def summary_lines(watched: Watched, events: Sequence[Event], recording: Recording | None) -> list[str]:
    """Sum up what was seen, in at most MOST_LINES lines of at most COLUMNS columns; none before the first interval."""
    frame = watched.last
    if frame is None or not watched.intervals:
        return []
    lines = [*_time(watched, frame), *_disks(watched, frame), *_paths(frame), *_events(events)]
    lines += [*_recording(recording), *_unseen(watched, frame)]
    return [_cut(f"{head:<{_HEAD_CELLS}}{text}") for head, text in lines[:MOST_LINES]]


_Lines = Iterator[tuple[str, str]]


def _time(watched: Watched, frame: Frame) -> _Lines:
    host = frame.topology.host
    tier = f", tier {host.tier.name.lower()}" if host.tier else ""
    count = f"{watched.intervals:,} interval{'' if watched.intervals == 1 else 's'}"
    yield "watched", f"{host.hostname or 'this host'} for {span_text(watched.seconds)}, {count}{tier}"


def _disks(watched: Watched, frame: Frame) -> _Lines:
    labels, disks = disk_labels(frame.topology), watched.hottest()
    if not disks:
        yield "disks", "no I/O"
    for number, disk in enumerate(disks):
        times = (("await", disk.await_ms), ("p99", disk.p99_ms), ("peak", disk.peak_ms))
        known = ", ".join(f"{title} {_ms(value)}" for title, value in times if math.isfinite(value))
        name = fit(labels.get(disk.key, disk.name), _NAME_CELLS)
        busy = format_quantity(disk.busy_pct, Unit.PERCENT, 4)
        yield "" if number else "hottest", f"{name} {known} ms, busy {busy} %"


def _ms(value: float) -> str:
    return format_quantity(value, Unit.MILLISECONDS, 5)


def _paths(frame: Frame) -> _Lines:
    failed = [path.name for path in frame.topology.graph.paths if not path.usable]
    if failed:
        more = f" and {len(failed) - MOST_PATHS:,} more" if len(failed) > MOST_PATHS else ""
        yield "paths", f"{len(failed):,} failed now: {', '.join(failed[:MOST_PATHS])}{more}"


def _events(events: Sequence[Event]) -> _Lines:
    if events:
        counts = Counter(event.kind for event in events).most_common()
        yield "events", ", ".join(f"{count:,} {kind}" for kind, count in counts)
    groups = event_groups(event for event in events if event.kind in KINDS)
    if groups:
        yield "", f"{clock_text(groups[-1].first.time_ns)} {groups[-1].text}"


def _recording(recording: Recording | None) -> _Lines:
    if recording is None:
        return
    size = format_quantity(float(recording.size_bytes), Unit.BYTES, 5)
    yield "recording", f"{recording.path} ({size}): {recording.trouble or 'lunscope replay shows it'}"


def _unseen(watched: Watched, frame: Frame) -> _Lines:
    lost = [f"{count:,} {words}" for words, count in loss_words(frame.losses) if count]
    if watched.gaps:
        lost.append(f"{watched.gaps:,} interval{'' if watched.gaps == 1 else 's'} missed")
    if lost:
        yield "not seen", "; ".join(lost)
    notices = frame.topology.host.notices
    if notices:
        more = f" (and {len(notices) - 1} more: lunscope doctor)" if len(notices) > 1 else ""
        yield "" if lost else "not seen", fit(notices[0], COLUMNS - _HEAD_CELLS - len(more)).rstrip() + more


def _cut(line: str) -> str:
    """At most COLUMNS columns, and nothing in it that commands the terminal."""
    return fit(line, min(COLUMNS, width_of(line))).rstrip()
