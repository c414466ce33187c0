"""The largest latencies of each interval, with their rows."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from collectors.latency.ticks import PEAK_COLUMNS, LatencyTick

PER_TICK = 3
"""Peaks stored per interval."""


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
    """Direction or part: read, write, queue, service or total."""


def peaks_of(tick: LatencyTick, source: str) -> Iterator[Peak]:
    """Yield the largest peaks of an interval, each row once, with its most relevant part or direction.

    A total is the whole time of an I/O, so parts are named only if the total is unknown.
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
    for position in np.argsort(-largest)[:PER_TICK]:
        if largest[position] > 0:
            row = int(peaks.row[position])
            what = named[int(values[position].argmax())]
            yield Peak(
                tick.time_ns, float(largest[position]), source, peaks.rows.keys[row], peaks.rows.names[row], what
            )


def largest(peaks: Iterable[Peak], most: int) -> list[Peak]:
    """Return the largest, in descending order."""
    return heapq.nlargest(most, peaks, key=lambda peak: (peak.latency_ns, peak.time_ns))


def _what(source: str, column: str) -> str:
    series = PEAK_COLUMNS[source][column]
    parts = {name.rpartition("_")[0] for name in series}
    return series[0] if parts == {""} else parts.pop()
