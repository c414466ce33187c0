"""The largest latencies of each interval, with whose they were."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from collectors.latency.ticks import PEAK_COLUMNS, LatencyTick

PER_TICK = 3
"""Peaks kept of an interval; the same moment is seldom worth more lines."""


@dataclass(frozen=True, slots=True)
class Peak:
    """The largest latency of one row in one interval."""

    time_ns: int
    """End of the interval."""
    latency_ns: float
    source: str
    key: str
    name: str
    what: str
    """Of which I/Os or which part: read, write, queue, service or total."""


def peaks_of(tick: LatencyTick, source: str) -> Iterator[Peak]:
    """Yield the largest peaks of an interval, each row once, with the part or direction that says most of it.

    A total is the whole of an I/O, so parts are named only where the total is not known.
    """
    peaks = tick.peaks
    if not len(peaks.row):
        return
    named = [_what(source, column) for column in peaks.columns]
    values = peaks.peak_ns
    if "total" in named:
        total = named.index("total")
        values = np.where((values[:, [total]] > 0) & (np.arange(len(named)) != total), 0.0, values)
    largest = values.max(axis=1)
    for place in np.argsort(-largest)[:PER_TICK]:
        if largest[place] > 0:
            row = int(peaks.row[place])
            what = named[int(values[place].argmax())]
            yield Peak(tick.time_ns, float(largest[place]), source, peaks.rows.keys[row], peaks.rows.names[row], what)


def largest(peaks: Iterable[Peak], most: int) -> list[Peak]:
    """Choose the largest, the largest first."""
    return heapq.nlargest(most, peaks, key=lambda peak: (peak.latency_ns, peak.time_ns))


def _what(source: str, column: str) -> str:
    series = PEAK_COLUMNS[source][column]
    parts = {name.rpartition("_")[0] for name in series}
    return series[0] if parts == {""} else parts.pop()
