"""Curves of one figure in both parts: the distribution of its values, and the figure over time."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.compare.measures import distributions
from collectors.compare.side import Figure, Side, SideRow
from collectors.field import Distribution, Field, Unit
from tui.screens.compare.comparison_rows import CompareRow

Floats = NDArray[np.float64]


class SideCurve(Struct, frozen=True, eq=False):
    """Points of A or B."""

    x: Floats
    y: Floats


class CurvePair(Struct, frozen=True, eq=False):
    """Both curves on the same axes; one without points is not known."""

    title: str
    a: SideCurve
    b: SideCurve
    x_unit: Unit | None
    """None: seconds since the start of each part."""
    y_unit: Unit
    is_log: bool = False
    """Whether the x axis is logarithmic."""

    @property
    def is_known(self) -> bool:
        """Whether there is anything to draw."""
        return bool(len(self.a.x) or len(self.b.x))


def distribution_overlay(row: CompareRow) -> CurvePair:
    """Share of I/Os up to each latency where there are histograms, else of the time up to each value."""
    field = row.found.field
    chosen = _distribution(field, row.row.a, row.row.b)
    if chosen is not None:
        a, b = (_of_histograms(side, chosen) for side in (row.row.a, row.row.b))
        return CurvePair(f"Share of I/Os by {chosen.title}", a, b, Unit.MILLISECONDS, Unit.PERCENT, is_log=True)
    a, b = _of_values(row.found.a), _of_values(row.found.b)
    return CurvePair(f"Share of time by {field.title}", a, b, field.unit, Unit.PERCENT)


def time_overlay(row: CompareRow, a: Side, b: Side) -> CurvePair:
    """Figure over the time since the start of each part."""
    of_a, of_b = _over_time(row.found.a, a, row.row.a), _over_time(row.found.b, b, row.row.b)
    return CurvePair(f"{row.title} over time", of_a, of_b, None, row.found.field.unit)


def _distribution(field: Field, a: SideRow, b: SideRow) -> Distribution | None:
    """Find the histograms of a time: those its percentile is of, or those of the same part of the time."""
    if field.unit is not Unit.MILLISECONDS:
        return None
    offered = [distribution for distribution, _ in distributions(field.table)]
    part = next((word for word in ("queue", "service") if word in field.id), "")
    if field.percentile is not None:
        offered = [field.percentile[1]]
    elif part or len(offered) > 1:
        offered = [distribution for distribution in offered if part and part in distribution.title]
    return next((one for one in offered if one in a.histograms and one in b.histograms), None)


def _of_histograms(row: SideRow, distribution: Distribution) -> SideCurve:
    blocks = row.histograms[distribution]
    counts = blocks.counts.sum(axis=0)
    held = np.flatnonzero(counts)
    total = counts.sum()
    if not total:
        return SideCurve(np.zeros(0), np.zeros(0))
    first = held[:1]
    x = np.concatenate((blocks.low[first], (blocks.low + blocks.width)[held]))
    return SideCurve(np.asarray(x, np.float64), np.concatenate((np.zeros(1), np.cumsum(counts[held]) / total * 100)))


def _of_values(figure: Figure) -> SideCurve:
    known = np.isfinite(figure.values) & (figure.weights > 0)
    values, weights = figure.values[known], figure.weights[known]
    if not len(values):
        return SideCurve(np.zeros(0), np.zeros(0))
    order = np.argsort(values)
    share = np.cumsum(weights[order]) / weights.sum() * 100
    return SideCurve(np.repeat(values[order], 2), np.repeat(np.concatenate((np.zeros(1), share)), 2)[1:-1])


def _over_time(figure: Figure, side: Side, row: SideRow) -> SideCurve:
    step_s = figure.per_value * side.interval_s
    elapsed_s = row.cut_s + (np.arange(len(figure.values)) + 0.5) * step_s
    known = np.isfinite(figure.values)
    return SideCurve(np.asarray(elapsed_s[known], np.float64), figure.values[known])
