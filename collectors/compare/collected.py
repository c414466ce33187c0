"""The intervals of one side of a comparison, collected one by one, from a recording or live."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from collectors.compare.measures import collected_fields, distributions, latency_subject
from collectors.compare.series import HistogramSeries, TableSeries
from collectors.compare.side import Figure, SideRow, Spread
from collectors.field import Distribution, Field, Unit
from collectors.latency.subjects import SOURCES
from collectors.model import Frame, Histograms, Tier
from collectors.registry import fields_of, subject_of
from engine.statistics.percentile_difference import HistogramBlocks, values_for
from engine.statistics.warmup import Trend, cut_warm_up, trend_of
from engine.text import safe_text

PERCENTS = (50.0, 90.0, 99.0, 99.9)

_OF_IO = frozenset({"iops", "in_flight"})
"""Subjects with neither, such as the host, are never idle."""


class CollectedIntervals:
    """Figures and histograms of the wanted fields by table, in memory that does not grow with time."""

    def __init__(self, tables: Mapping[str, Sequence[Field]]) -> None:
        self.tables = {name: TableSeries(collected_fields(subject_of(name), fields)) for name, fields in tables.items()}
        self.histograms: dict[str, HistogramSeries] = {}
        self.names: dict[tuple[str, str], tuple[str, str]] = {}
        """Name and identity of a row, by table and key."""
        self.active: set[tuple[str, str]] = set()
        self.frame: Frame | None = None
        """The newest."""
        self.intervals = 0
        self._elapsed_s = 0.0

    @property
    def interval_s(self) -> float:
        """Mean length of an interval; 0 without any."""
        return self._elapsed_s / self.intervals if self.intervals else 0.0

    def add(self, frame: Frame, histograms: Mapping[str, Histograms]) -> None:
        """Add the tables and histograms of an interval, whose length must be known."""
        self.intervals += 1
        self._elapsed_s += frame.elapsed_s
        for source, cells in histograms.items():
            if source in SOURCES:
                self.histograms.setdefault(source, HistogramSeries()).add(cells, frame.monotonic_ns)
        for name, series in self.tables.items():
            table = frame.tables.get(name)
            if table is not None and len(table.rows):
                series.add(frame, table)
                self._note_rows(frame, name)
        self.frame = frame

    def rows(self, *, growing: bool) -> tuple[SideRow, ...]:
        """Make the rows of a side; of one that grows nothing is left out as warm-up."""
        return tuple(_rows(self, self.interval_s, growing=growing))

    def _note_rows(self, frame: Frame, name: str) -> None:
        table, subject = frame.tables[name], subject_of(name)
        if self.frame is None or name not in self.frame.tables or self.frame.tables[name].rows is not table.rows:
            labels = subject.labels(table.rows, frame.topology)
            for key, label in zip(table.rows.keys, labels, strict=True):
                self.names[name, key] = safe_text(label), subject.identity(key, frame.topology)
        does_io = not table.columns.keys().isdisjoint(_OF_IO)
        active = np.flatnonzero(subject.active(table)) if does_io else range(len(table.rows))
        self.active.update((name, table.rows.keys[row]) for row in active)


def _rows(collected: CollectedIntervals, interval_s: float, *, growing: bool) -> Iterator[SideRow]:
    for name, series in collected.tables.items():
        for key in series.keys:
            yield _row(collected, name, key, interval_s, growing=growing)


def _row(collected: CollectedIntervals, name: str, key: str, interval_s: float, *, growing: bool) -> SideRow:
    series = collected.tables[name]
    label, identity = collected.names[name, key]
    cut, trend = _cut(series, key, growing=growing)
    after_ns = series.ends_ns[cut - 1] if cut else 0
    histograms = _histograms(collected, name, key, after_ns)
    return SideRow(
        name,
        key,
        label,
        identity,
        {field.id: _figure(series, key, position, cut, histograms) for position, field in enumerate(series.fields)},
        histograms,
        dict(_spreads(series, name, key, histograms)),
        (name, key) in collected.active,
        cut * series.per_cell * interval_s,
        trend,
    )


def _cut(series: TableSeries, key: str, *, growing: bool) -> tuple[int, Trend]:
    """Find how many cells of a row to leave out: those before its throughput was steady, if it was different then.

    None of a recording that grows: where to cut would change, and intervals that are valid at any time forbid that.
    """
    rates = [position for position, field in enumerate(series.fields) if field.unit is Unit.PER_SECOND]
    if not rates:
        return 0, Trend.NONE
    values, weights, _ = series.of(key, rates[0])
    known = np.flatnonzero(weights > 0)
    found = cut_warm_up(values[known])
    if found.is_settled and found.cut and found.trend is not Trend.NONE and not growing:
        return int(known[found.cut]), found.trend
    return 0, Trend.NONE if found.is_settled and not growing else trend_of(values[known])


def _figure(
    series: TableSeries, key: str, position: int, cut: int, histograms: dict[Distribution, HistogramBlocks]
) -> Figure:
    field = series.fields[position]
    values, weights, tiers = series.of(key, position)
    values, weights, tiers = values[cut:], weights[cut:], tiers[cut:]
    tier = _usual(tiers)
    weights = np.where((tiers == 0) | (tiers == tier), weights, 0.0)
    percentile = field.percentile
    known = weights > 0
    mean = float((values[known] * weights[known]).sum() / weights[known].sum()) if known.any() else float("nan")
    if percentile is not None and percentile[1] in histograms:
        mean = histograms[percentile[1]].percentile(percentile[0])
    varies = field.id in series.varying
    return Figure(mean, values, weights, tier=tier, varies=varies, per_value=series.per_cell)


def _usual(tiers: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> Tier:
    """Return the tier of most values with I/O."""
    counts = np.bincount(tiers, minlength=len(Tier))[1:]
    return Tier(int(counts.argmax()) + 1) if counts.any() else Tier.NONE


def _histograms(
    collected: CollectedIntervals, name: str, key: str, after_ns: int
) -> dict[Distribution, HistogramBlocks]:
    assert collected.frame is not None, "collected with the first interval"
    subject = latency_subject(name, key, collected.frame)
    wanted = {field.percentile[1] for field in fields_of(name) if field.percentile is not None}
    histograms = {}
    for distribution in wanted:
        series = collected.histograms.get(distribution.source)
        blocks = None if series is None or subject is None else series.of(subject, distribution.part, after_ns)
        if blocks is not None:
            histograms[distribution] = blocks
    return histograms


def _spreads(
    series: TableSeries, name: str, key: str, histograms: dict[Distribution, HistogramBlocks]
) -> Iterator[tuple[str, Spread]]:
    for distribution, peak in distributions(name):
        blocks = histograms.get(distribution)
        if blocks is not None:
            enough = [percent for percent in PERCENTS if blocks.ios >= values_for(percent) / 10]
            percentiles = {percent: blocks.percentile(percent) for percent in enough}
            yield distribution.title, Spread(percentiles, series.largest(key, peak.id), blocks.ios)
