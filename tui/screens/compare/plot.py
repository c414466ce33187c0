"""Curves of A and B on the same axes: the distribution of a figure, or the figure over time."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from textual.strip import Strip

from collectors.compare.measures import distributions
from collectors.compare.side import Figure, Side, SideRow
from collectors.field import Distribution, Field, Unit
from tui.screens.compare.comparison_rows import CompareRow
from tui.text.format import span_text
from tui.text.glyphs import glyphs_of
from tui.text.safe import fit
from tui.widgets.chart.axes import tick_label
from tui.widgets.plots import AXIS_CELLS, Canvas, PlotAxis, Rounding, line_below, plot_lines
from tui.widgets.spans import Spanned, Spans

_X_LABEL = 8
"""Cells of a label below, such as 12.5k 1/s."""
_LEAST = (24, 4)
STYLES = {"A": ("curve", 1, "a"), "B": ("peak", 2, "b")}
"""Style, every n-th dot, and the character where there is no braille."""

Floats = NDArray[np.float64]


_ROUNDINGS = {None: Rounding.CLOCK, Unit.BYTES: Rounding.BINARY, Unit.BYTES_PER_SECOND: Rounding.BINARY}
"""Roundings by unit; None is for seconds. All others are decimal."""


def _axis(unit: Unit | None, *values: Floats, is_log: bool = False, from_zero: bool = False) -> PlotAxis:
    every = np.concatenate(values)
    every = every[np.isfinite(every) & ((every > 0) | (not is_log))]
    low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
    if is_log:
        low = max(low, 1e-6)
        return PlotAxis(low, max(high, low * 1.01), is_log=True)
    low = min(low, 0.0) if from_zero else low
    return PlotAxis(
        low, high if high > low else low + (abs(low) or 1.0), rounding=_ROUNDINGS.get(unit, Rounding.DECIMAL)
    )


class OverlayPlot(Spanned, inherit_bindings=False):
    """Two curves with a legend, units on both axes."""

    can_focus = False

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._overlay: CurvePair | None = None

    def show(self, overlay: CurvePair | None) -> None:
        """Take the curves, or none."""
        self._overlay = overlay
        self.repaint()

    def draw_lines(self) -> list[Strip]:
        """Title with legend, plot, axis."""
        overlay = self._overlay
        if overlay is None or self.area.width < _LEAST[0] or self.area.height < _LEAST[1]:
            return self.filled(())
        if not overlay.is_known:
            return self.hint(f"{overlay.title}: not known")
        is_time = overlay.x_unit is None
        x = _axis(overlay.x_unit, overlay.a.x, overlay.b.x, is_log=overlay.is_log, from_zero=is_time)
        is_share = overlay.y_unit is Unit.PERCENT and not is_time
        y = PlotAxis(0.0, 100.0) if is_share else _axis(overlay.y_unit, overlay.a.y, overlay.b.y, from_zero=True)
        canvas = Canvas(max(self.area.height - 3, 1), self.area.width - AXIS_CELLS - 1, glyphs_of(self))
        for name, curve in (("A", overlay.a), ("B", overlay.b)):
            _draw(canvas, curve, (x, y), name)
        return self.filled(self.strip(line) for line in self._lines(overlay, canvas, x, y))

    def _lines(self, overlay: CurvePair, canvas: Canvas, x: PlotAxis, y: PlotAxis) -> Iterator[Spans]:
        glyphs = glyphs_of(self)
        legend = [
            (f" A {'line' if glyphs.braille else 'a'}", "curve"),
            (f" B {'dots' if glyphs.braille else 'b'}", "peak"),
        ]
        room = self.area.width - sum(len(text) for text, _ in legend)
        yield [(fit(f" {overlay.title}", max(room, 0), glyphs.ellipsis).rstrip(), "mark"), *legend]
        unit = "%" if overlay.y_unit is Unit.PERCENT else ""
        yield from plot_lines(self, canvas, y, lambda value: tick_label(value, overlay.y_unit) + unit)
        yield [(line_below(x, canvas.cells, functools.partial(_x_label, overlay), _X_LABEL), "axis")]


def _draw(canvas: Canvas, curve: SideCurve, axes: tuple[PlotAxis, PlotAxis], name: str) -> None:
    if not len(curve.x):
        return
    style, every, plain = STYLES[name]
    xs, ys = axes[0].at(curve.x), axes[1].at(curve.y)
    if len(xs) == 1:
        canvas.mark(float(xs[0]), float(ys[0]), plain, style)
        return
    canvas.line(xs, ys, style, every=every, plain=plain)


def _x_label(overlay: CurvePair, value: float) -> str:
    if overlay.x_unit is None:
        return span_text(value)
    return f"{tick_label(value, overlay.x_unit)} {overlay.x_unit}".rstrip()


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
