"""Events for paths that deviate from their peers: one when it begins and one when it ends."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from collectors.model import Frame, Sample
from collectors.rates import derive
from collectors.sampling.schedule import SECOND_NS
from collectors.tables.block.path_verdict import LEAST_IOS, PathJudgement, judge_paths, odd_words
from collectors.tables.block.schema import DISK, GROUP, TRACE, TRACE_GROUP, TRACER
from engine.events import Event, EventKind
from engine.replacing import replace
from engine.strict_json import rounded
from engine.text import safe_text

COMPARE_EVERY_S = 10.0
"""Paths are compared over intervals of this length: long enough for a significant mean."""
MOST_EVENTS = 8
"""More paths than this at once (a slow port) are reported in one event."""

_NEEDED = (DISK.name, GROUP.name, TRACE.name, TRACE_GROUP.name, TRACER.name)


class PathWatch:
    """Compares paths every ten seconds of a live source; a deviation is reported once until it ends."""

    def __init__(self, interval_s: float = COMPARE_EVERY_S) -> None:
        self._interval_ns = round(interval_s * SECOND_NS)
        self._start: Sample | None = None
        self._reported: dict[str, str] = {}
        """Names of the reported paths, by key."""

    def compare(self, sample: Sample) -> tuple[Event, ...]:
        """Return the events of a sample; none before an interval is complete."""
        if self._start is None:
            self._start = _needed(sample)
            return ()
        if sample.monotonic_ns - self._start.monotonic_ns < self._interval_ns:
            return ()
        start, self._start = self._start, _needed(sample)
        frame = derive(start, self._start)
        judged = judge_paths(frame)
        return () if judged is None else tuple(self._events(frame, judged))

    def _events(self, frame: Frame, judged: PathJudgement) -> Iterator[Event]:
        rows = frame.tables["paths"].rows
        odd = {rows.keys[row]: row for row in judged.odd.tolist()}
        new = {key: row for key, row in odd.items() if key not in self._reported}
        recovered = [key for key in self._reported if key not in odd and _is_active(frame, key)]
        gone = [key for key in self._reported if key not in rows.positions]
        if len(new) > MOST_EVENTS:
            yield Event.now(EventKind.PATH, f"{len(new):,} paths are not like their peers", paths=len(new))
        else:
            for row in new.values():
                yield _event(frame, judged, row)
        if 0 < len(recovered) <= MOST_EVENTS:
            for key in recovered:
                name = self._reported[key]
                yield Event.now(EventKind.PATH, f"path {name} is like its peers again", path=name)
        elif recovered:
            yield Event.now(
                EventKind.PATH, f"{len(recovered):,} paths are like their peers again", paths=len(recovered)
            )
        for key in (*recovered, *gone):
            del self._reported[key]
        self._reported |= {key: safe_text(rows.names[row]) for key, row in new.items()}


def _needed(sample: Sample) -> Sample:
    """Reduce a sample to the tables needed, so that the others can be freed."""
    tables = {name: sample.tables[name] for name in _NEEDED if name in sample.tables}
    return replace(sample, tables=tables, histograms={}, events=())


def _event(frame: Frame, judged: PathJudgement, row: int) -> Event:
    data = {
        "path": safe_text(frame.tables["paths"].rows.names[row]),
        "sick_times": rounded(float(judged.sick_times[row]), 2),
        "uneven_times": rounded(float(judged.uneven_times[row]), 2),
        "stalled": int(np.isinf(judged.sick_times[row])),
    }
    return Event.now(EventKind.PATH, odd_words(frame, judged, row), **data)


def _is_active(frame: Frame, key: str) -> bool:
    """Whether a path did enough I/O to report that it no longer deviates."""
    paths = frame.tables["paths"]
    row = paths.rows.positions.get(key)
    return row is not None and paths.value("iops", row) * frame.elapsed_s >= LEAST_IOS
