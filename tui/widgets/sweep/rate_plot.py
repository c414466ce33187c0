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
from tui.text.format import format_quantity
from tui.text.glyphs import glyphs_of
from tui.widgets.chart.axes import tick_label
from tui.widgets.spans import Spanned, Spans
from tui.widgets.sweep.canvas import Canvas

_AXIS = 7
"""Cells of the labels of the latency axis."""
_LEAST = (24, 6)
_MARKS = {LoadClass.LOWER: ("o", "curve"), LoadClass.UPPER: ("x", "failed"), LoadClass.UNDECIDED: ("?", "muted")}

Floats = NDArray[np.float64]


class ClosedCurve(Struct, frozen=True, eq=False):
    """A measured closed loop, with rising load: IOPS and the limited latency in ms."""

    iops: Floats
    latency_ms: Floats


class _RateScales(Struct, frozen=True):
    """Both in logarithms: rates far below the maximum are as far apart as those near it."""

    lowest: float
    highest: float
    low_ms: float
    high_ms: float

    def x(self, rate: float | Floats) -> Floats:
        inside = np.maximum(np.asarray(rate), self.lowest)
        return np.asarray(np.log(inside / self.lowest) / math.log(self.highest / self.lowest), np.float64)

    def rate(self, x: float) -> float:
        return float(self.lowest * (self.highest / self.lowest) ** x)

    def y(self, latency_ms: float | Floats) -> Floats:
        floor = np.maximum(np.asarray(latency_ms), self.low_ms)
        return np.asarray(np.log(floor / self.low_ms) / math.log(self.high_ms / self.low_ms), np.float64)


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
        scales = self._scales(known)
        rows, cells = self.area.height - 3, self.area.width - _AXIS - 1
        canvas = Canvas(rows, cells, glyphs_of(self))
        self._draw(canvas, known, scales)
        return self.filled(self.strip(line) for line in self._lines(canvas, scales, rows, cells))

    def _known(self) -> list[tuple[float, float, RateRow]]:
        """Rate, latency and row of what was measured, with rising rate."""
        rows = sorted(self._rows, key=lambda row: row.point)
        figures = [(row.point.rate, row.figure(self._metric), row) for row in rows]
        return [(rate, value, row) for rate, value, row in figures if value]

    def _scales(self, known: Sequence[tuple[float, float, RateRow]]) -> _RateScales:
        rates, latencies = [rate for rate, _, _ in known], [value for _, value, _ in known]
        if self._answer is not None:
            latencies.append(self._answer.limit.limit_ns / 1e6)
        if self._loop is not None and len(self._loop.iops):
            rates.append(float(self._loop.iops.max()))
            latencies += [value for value in self._loop.latency_ms.tolist() if math.isfinite(value) and value > 0]
        low, high = min(rates) / 1.1, max(rates) * 1.1
        return _RateScales(low, high, min(latencies) / 1.3, max(max(latencies) * 1.3, min(latencies) * 2))

    def _draw(self, canvas: Canvas, known: Sequence[tuple[float, float, RateRow]], scales: _RateScales) -> None:
        answer, closed = self._answer, self._loop
        if answer is not None:
            self._draw_limit(canvas, answer, scales)
        if closed is not None:
            there = np.isfinite(closed.latency_ms) & (closed.latency_ms > 0)
            if there.sum() > 1:
                canvas.line(
                    scales.x(closed.iops[there]), scales.y(closed.latency_ms[there]), "axis", every=2, plain=":"
                )
        rates, latencies = (np.array([each[column] for each in known], np.float64) for column in (0, 1))
        if len(known) > 1:
            canvas.line(scales.x(rates), scales.y(latencies), "text")
        for rate, latency, row in known:
            mark = _MARKS[row.classes[self._number].found] if row.classes else ("+", "text")
            canvas.mark(float(scales.x(rate)), float(scales.y(latency)), *mark)

    def _draw_limit(self, canvas: Canvas, answer: RateAnswer, scales: _RateScales) -> None:
        ends, limit_y = np.array([0.0, 1.0]), scales.y(answer.limit.limit_ns / 1e6)
        canvas.line(ends, np.repeat(limit_y, 2), "peak", every=3, plain="-")
        for bound, style in ((answer.lower, "curve"), (answer.upper, "failed")):
            if bound is not None:
                canvas.line(np.repeat(scales.x(bound.rate), 2), ends, style, every=2, plain="|")
        canvas.label(0.02, float(limit_y), answer.limit.text, "peak")

    def _lines(self, canvas: Canvas, scales: _RateScales, rows: int, cells: int) -> Iterator[Spans]:
        glyphs = glyphs_of(self)
        legend = "  + open loop" if self._answer is None else "  o lower bound  x upper  ? undecided"
        closed = "" if self._loop is None else "  dotted: closed loop"
        title = f" {self._metric} (ms) over rate (I/Os per s), both log"
        for extra in (legend + closed, legend):
            if len(title) + len(extra) <= self.area.width:
                legend = extra
                break
        yield [(title, "mark"), (legend, "text")]
        ticks = {round((rows - 1) * share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)}
        for row in range(rows):
            label = ""
            if row in ticks:
                y = 1 - row / max(rows - 1, 1)
                value = scales.low_ms * (scales.high_ms / scales.low_ms) ** y
                label = tick_label(value, Unit.MILLISECONDS)
            bar = glyphs.tick_left if label else glyphs.vertical
            yield [(label.rjust(_AXIS) + bar, "axis"), *canvas.row(row)]
        yield [(" " * _AXIS + glyphs.corner + glyphs.horizontal * cells, "axis")]
        yield [(self._rate_axis(scales, cells), "axis")]

    def _rate_axis(self, scales: _RateScales, cells: int) -> str:
        text = [" "] * (_AXIS + 1 + cells)
        for share in (0.25, 0.5, 0.75, 1.0):
            label = format_quantity(scales.rate(share), Unit.PER_SECOND, 6)
            end = _AXIS + 1 + round(share * cells)
            text[end - len(label) : end] = label
        return "".join(text)
