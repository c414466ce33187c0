"""A limited figure over the rate, with the limit, the bounds, and the closed curve of the same load beside it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from textual.strip import Strip

from collectors.field import Unit
from engine.rate_search.answer import RateAnswer
from engine.rate_search.bounds import LoadClass
from tui.sweep.rate_rows import RateRow
from tui.text.glyphs import glyphs_of
from tui.widgets.chart.axes import tick_label
from tui.widgets.plot.axis import AXIS_CELLS, PlotAxis, line_below, plot_lines
from tui.widgets.plot.canvas import Canvas
from tui.widgets.spans import Spanned, Spans

_LEAST = (24, 6)
_MARKS = {LoadClass.LOWER: ("o", "curve"), LoadClass.UPPER: ("x", "failed"), LoadClass.UNDECIDED: ("?", "muted")}

Floats = NDArray[np.float64]


class ClosedCurve(Struct, frozen=True, eq=False):
    """A measured closed loop, with rising load: IOPS and the limited latency in ms."""

    iops: Floats
    latency_ms: Floats


class _RateAxes(Struct, frozen=True):
    """Both in logarithms: rates far below the maximum are as far apart as those near it."""

    rate: PlotAxis
    latency_ms: PlotAxis


class RatePlot(Spanned, inherit_bindings=False):
    """The figure of the limit in front over the rate."""

    can_focus = False

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._rows: Sequence[RateRow] = ()
        self._metric = "p99"
        self._answer: RateAnswer | None = None
        self._number = 0
        self._loop: ClosedCurve | None = None

    def show(
        self, rows: Sequence[RateRow], metric: str, answer: RateAnswer | None, number: int, closed: ClosedCurve | None
    ) -> None:
        """Take the rows, the figure to draw, its limit in front with the number, if any, and the closed curve."""
        self._rows, self._metric, self._answer, self._number, self._loop = rows, metric, answer, number, closed
        self.repaint()

    def on_resize(self) -> None:
        """Draw in the new size."""
        self.repaint()

    def draw_lines(self) -> list[Strip]:
        """Title, plot, axis of rates."""
        known = self._known()
        if not known or self.area.width < _LEAST[0] or self.area.height < _LEAST[1]:
            return self.hint("latency over rate: nothing was measured yet")
        axes = self._axes(known)
        canvas = Canvas(self.area.height - 3, self.area.width - AXIS_CELLS - 1, glyphs_of(self))
        self._draw(canvas, known, axes)
        return self.filled(self.strip(line) for line in self._lines(canvas, axes))

    def _known(self) -> list[tuple[float, float, RateRow]]:
        """Rate, latency and row of what was measured, with rising rate."""
        rows = sorted(self._rows, key=lambda row: row.point)
        figures = [(row.point.rate, row.figure(self._metric), row) for row in rows]
        return [(rate, value, row) for rate, value, row in figures if value]

    def _axes(self, known: Sequence[tuple[float, float, RateRow]]) -> _RateAxes:
        rates, latencies = [rate for rate, _, _ in known], [value for _, value, _ in known]
        if self._answer is not None:
            latencies.append(self._answer.limit.limit_ns / 1e6)
        if self._loop is not None and len(self._loop.iops):
            rates.append(float(self._loop.iops.max()))
            latencies += [value for value in self._loop.latency_ms.tolist() if math.isfinite(value) and value > 0]
        low, high = min(rates) / 1.1, max(rates) * 1.1
        latency_ms = PlotAxis(min(latencies) / 1.3, max(max(latencies) * 1.3, min(latencies) * 2), is_log=True)
        return _RateAxes(PlotAxis(low, high, is_log=True), latency_ms)

    def _draw(self, canvas: Canvas, known: Sequence[tuple[float, float, RateRow]], axes: _RateAxes) -> None:
        answer, closed = self._answer, self._loop
        x, y = axes.rate.at, axes.latency_ms.at
        if answer is not None:
            self._draw_limit(canvas, answer, axes)
        if closed is not None:
            there = np.isfinite(closed.latency_ms) & (closed.latency_ms > 0)
            if there.sum() > 1:
                canvas.line(x(closed.iops[there]), y(closed.latency_ms[there]), "axis", every=2, plain=":")
        rates, latencies = (np.array([each[column] for each in known], np.float64) for column in (0, 1))
        if len(known) > 1:
            canvas.line(x(rates), y(latencies), "text")
        for rate, latency, row in known:
            mark = _MARKS[row.classes[self._number].found] if row.classes else ("+", "text")
            canvas.mark(float(x(rate)), float(y(latency)), *mark)

    def _draw_limit(self, canvas: Canvas, answer: RateAnswer, axes: _RateAxes) -> None:
        ends, limit_y = np.array([0.0, 1.0]), axes.latency_ms.at(answer.limit.limit_ns / 1e6)
        canvas.line(ends, np.repeat(limit_y, 2), "peak", every=3, plain="-")
        for bound, style in ((answer.lower, "curve"), (answer.upper, "failed")):
            if bound is not None:
                canvas.line(np.repeat(axes.rate.at(bound.rate), 2), ends, style, every=2, plain="|")
        canvas.label(0.02, float(limit_y), answer.limit.text, "peak")

    def _lines(self, canvas: Canvas, axes: _RateAxes) -> Iterator[Spans]:
        legend = "  + open loop" if self._answer is None else "  o lower bound  x upper  ? undecided"
        closed = "" if self._loop is None else "  dotted: closed loop"
        title = f" {self._metric} (ms) over rate (I/Os per s), both log"
        for extra in (legend + closed, legend):
            if len(title) + len(extra) <= self.area.width:
                legend = extra
                break
        yield [(title, "mark"), (legend, "text")]
        yield from plot_lines(self, canvas, axes.latency_ms, lambda value: tick_label(value, Unit.MILLISECONDS))
        yield [(line_below(axes.rate, canvas.cells, lambda value: tick_label(value, Unit.PER_SECOND)), "axis")]
