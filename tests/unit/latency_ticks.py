"""Latencies of a subject made from values, for the tests of heat maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collectors.latency.subjects import LatencySubject
from collectors.latency.ticks import LatencyTick, LatencyTicks, LatencyTrack, RowPeaks
from collectors.model import Histograms, HistogramScale, Rows

SECOND_NS = 1_000_000_000
START_NS = 1_767_225_600 * SECOND_NS
SCALE = HistogramScale(unit_ns=1, sub_bits=6)
SERIES = ("read", "write")
ROWS = Rows(("a", "b"), ("vda", "vdb"))
EVERYBODY = LatencySubject("everybody", "load", frozenset())


def bucket_of(scale: HistogramScale, value_ns: int) -> int:
    """The definition in HistogramScale, in whole numbers."""
    units = value_ns // scale.unit_ns
    octave = max(units.bit_length() - 1 - scale.sub_bits, -1)
    if octave < 0:
        return units
    return ((octave + 1) << scale.sub_bits) + (units >> octave) - (1 << scale.sub_bits)


def histograms(ios: Sequence[tuple[int, int, int]], rows: Rows = ROWS, scale: HistogramScale = SCALE) -> Histograms:
    """Histograms of I/Os given as (row, series, latency in ns)."""
    cells: dict[tuple[int, int, int], int] = {}
    for row, series, latency_ns in ios:
        cell = (row, series, bucket_of(scale, latency_ns))
        cells[cell] = cells.get(cell, 0) + 1
    keys = sorted(cells)
    rows_of, series_index, bucket = (np.array([key[part] for key in keys]) for part in range(3))
    count = np.array([cells[key] for key in keys], np.uint64)
    return Histograms(
        scale, rows, SERIES, rows_of.astype(np.uint32), series_index.astype(np.uint8), bucket.astype(np.uint16), count
    )


def tick(
    at_s: float, ios: Sequence[tuple[int, int, int]], *, rows: Rows = ROWS, span_s: float = 1.0, exact: bool = True
) -> LatencyTick:
    """One interval of I/Os given as (row, series, latency in ns)."""
    peaks = np.zeros((len(rows), 2))
    for row, series, latency_ns in ios:
        peaks[row, series] = max(peaks[row, series], latency_ns)
    columns = ("read_peak_ns", "write_peak_ns") if exact else ()
    known = RowPeaks(rows, columns, np.arange(len(rows)), peaks if exact else np.zeros((len(rows), 0)))
    time_ns = START_NS + round(at_s * SECOND_NS)
    return LatencyTick(time_ns, round(span_s * SECOND_NS), histograms(ios, rows), known)


def track(ticks: Sequence[LatencyTick], subject: LatencySubject = EVERYBODY) -> LatencyTrack:
    made = LatencyTrack(subject, SCALE, SERIES)
    for each in ticks:
        made.add(each)
    return made


def ticks_of(seconds: Sequence[Sequence[int]], series: int = 0) -> LatencyTicks:
    """One interval a second with the given latencies."""
    made = [tick(at, [(0, series, latency) for latency in latencies]) for at, latencies in enumerate(seconds)]
    return track(made).view()
