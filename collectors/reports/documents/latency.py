"""Distributions of latency: of the load and of disks that were timed exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.derive.percentiles import RowCells, bucket_midpoints_ns, percentiles_ns
from collectors.latency.subjects import Direction, LatencySubject, parts_of, series_of
from collectors.model import Histograms, HistogramScale, Part
from collectors.reports.documents.content import DocumentTable, DrawnAxis, DrawnChart, DrawnCurve, Mark

PERCENTS = (50.0, 90.0, 99.0, 99.9)
_BINS_PER_OCTAVE = 4
_NAMES = {Part.TOTAL: "latency", Part.QUEUE: "Q", Part.SERVICE: "S"}


class SubjectLatencies(Struct, frozen=True, eq=False):
    """Latencies of one subject and part over a whole recording."""

    title: str
    part: Part
    scale: HistogramScale
    bucket: NDArray[np.uint16]
    count: NDArray[np.uint64]

    @property
    def ios(self) -> int:
        """I/Os counted."""
        return int(self.count.sum())

    def percentiles_ms(self) -> tuple[float, ...]:
        """PERCENTS in ms, NaN where there are too few I/Os."""
        cells = RowCells(self.scale, np.zeros(len(self.bucket), np.uint32), self.bucket, self.count)
        return tuple((percentiles_ns(cells, 1, PERCENTS)[:, 0] / 1e6).tolist())


def distributions(histograms: Histograms, subject: LatencySubject) -> Iterator[SubjectLatencies]:
    """Yield the parts of a subject that hold any I/O."""
    rows = np.array([not subject.keys or key in subject.keys for key in histograms.rows.keys], np.bool_)
    for part in parts_of(histograms.series):
        wanted = series_of(histograms.series, part, Direction.BOTH)
        series = np.array([name in wanted for name in histograms.series], np.bool_)
        kept = rows[histograms.row] & series[histograms.series_index] if len(rows) else np.zeros(0, np.bool_)
        if kept.any():
            total = np.bincount(histograms.bucket[kept], histograms.count[kept]).astype(np.uint64)
            bucket = np.flatnonzero(total)
            count = total[bucket]
            yield SubjectLatencies(subject.title, part, histograms.scale, bucket.astype(np.uint16), count)


def distribution_chart(found: Sequence[SubjectLatencies]) -> DrawnChart:
    """Draw the parts of one subject as shares of I/Os over the logarithm of latency."""
    curves = tuple(_curve(each) for each in found)
    marks = []
    if len(found) == 1:
        named = zip(("p50", "p90", "p99", "p99.9"), found[0].percentiles_ms(), strict=True)
        marks = [Mark(value, name, f"{name} {value:.3f} ms") for name, value in named if not math.isnan(value)]
    return DrawnChart(found[0].title, "% of I/Os", curves, DrawnAxis.LOG, "ms", tuple(marks))


def _curve(found: SubjectLatencies) -> DrawnCurve:
    middle_ms = np.maximum(bucket_midpoints_ns(found.scale, found.bucket), 1.0) / 1e6
    bins = np.floor(np.log2(middle_ms) * _BINS_PER_OCTAVE).astype(np.int64)
    first, last = int(bins.min()) - 1, int(bins.max()) + 1
    shares = np.bincount(bins - first, found.count.astype(np.float64), minlength=last - first + 1)
    shares *= 100 / shares.sum()
    x = np.exp2((np.arange(first, last + 1) + 0.5) / _BINS_PER_OCTAVE)
    return DrawnCurve(_NAMES[found.part], tuple(x.tolist()), tuple(shares.tolist()))


def percentile_grid(found: Sequence[SubjectLatencies]) -> DocumentTable:
    """Percentiles of subjects, from the sums of all their histograms."""
    head = (("of", ""), ("time", ""), ("I/Os", ""), *((f"p{percent:g}", "ms") for percent in PERCENTS))
    rows = tuple(
        (each.title, _NAMES[each.part], f"{each.ios:,}", *map(ms_text, each.percentiles_ms())) for each in found
    )
    return DocumentTable("Percentiles of the load" if len(found) == 1 else "Percentiles", head, rows, texts=2)


def ms_text(value: float) -> str:
    """Write milliseconds with three decimals, a missing value as a dash."""
    return "-" if math.isnan(value) else f"{value:,.3f}"
