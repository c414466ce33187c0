"""Throughput against latency: the curve of the cursor with its optima and their interval, the others behind it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from textual.strip import Strip

from collectors.field import Unit
from engine.sweep.knee import Answer
from tui.sweep.rows import PointRow, interval, optima
from tui.text.glyphs import glyphs_of
from tui.widgets.chart.axes import tick_label
from tui.widgets.plot.axis import AXIS_CELLS, PlotAxis, line_below, plot_lines
from tui.widgets.plot.canvas import Canvas
from tui.widgets.spans import Spanned, Spans

_LEAST = (20, 5)
_MEASURED = "o"
_SAMPLES = 64

Floats = NDArray[np.float64]


class _PlottedCurve(Struct, frozen=True, eq=False):
    """Measured loads, ascending."""

    loads: Floats
    iops: Floats
    mean_ms: Floats
    p99_ms: Floats
    """NaN where there are too few I/Os."""

    @classmethod
    def of(cls, rows: Sequence[PointRow]) -> _PlottedCurve:
        known = sorted((row for row in rows if row.summary is not None and row.figure("iops")), key=lambda r: r.point)
        columns = [[row.figure(name) for row in known] for name in ("iops", "mean", "p99")]
        figures = [np.array([math.nan if each is None else each for each in column]) for column in columns]
        return cls(np.array([float(row.point.load) for row in known]), *figures)

    def at(self, loads: Floats) -> tuple[Floats, Floats]:
        """IOPS and mean latency between measured loads, in logarithms."""
        n = np.log(self.loads)
        iops, mean = (np.exp(np.interp(np.log(loads), n, np.log(each))) for each in (self.iops, self.mean_ms))
        return np.asarray(iops, np.float64), np.asarray(mean, np.float64)


class _SweepAxes(Struct, frozen=True):
    """Throughput runs linearly from 0, latency in logarithms."""

    iops: PlotAxis
    latency_ms: PlotAxis

    @classmethod
    def of(cls, curves: Sequence[_PlottedCurve]) -> _SweepAxes:
        iops = np.concatenate([curve.iops for curve in curves])
        latencies = np.concatenate([each for curve in curves for each in (curve.mean_ms, curve.p99_ms)])
        latencies = latencies[np.isfinite(latencies) & (latencies > 0)]
        low, high = float(latencies.min(initial=1.0)), float(latencies.max(initial=1e-6))
        latency_ms = PlotAxis(low / 1.3, max(high * 1.3, low * 2), is_log=True)
        return cls(PlotAxis(0.0, float(iops.max()) * 1.05), latency_ms)


class SweepPlot(Spanned, inherit_bindings=False):
    """Latency over throughput."""

    can_focus = False

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._rows: Sequence[PointRow] = ()
        self._curve = 0
        self._answer: Answer | None = None
        self._name = self._knob = ""

    def show(self, rows: Sequence[PointRow], curve: int, answer: Answer | None, name: str, knob: str) -> None:
        """Take the rows of all curves, the one in front with its answer and name, and the key of its load."""
        self._rows, self._curve, self._answer, self._name, self._knob = rows, curve, answer, name, knob
        self.repaint()

    def on_resize(self) -> None:
        """Draw in the new size."""
        self.repaint()

    def draw_lines(self) -> list[Strip]:
        """Title, plot, axis of throughput."""
        by_curve: dict[int, list[PointRow]] = {}
        for row in self._rows:
            by_curve.setdefault(row.point.curve, []).append(row)
        measured = {index: _PlottedCurve.of(rows) for index, rows in by_curve.items()}
        curves = {index: curve for index, curve in measured.items() if len(curve.loads)}
        if not curves or self.area.width < _LEAST[0] or self.area.height < _LEAST[1]:
            return self.hint("throughput against latency: nothing was measured yet")
        axes = _SweepAxes.of(list(curves.values()))
        canvas = Canvas(self.area.height - 3, self.area.width - AXIS_CELLS - 1, glyphs_of(self))
        self._draw_curves(canvas, curves, axes)
        return self.filled(self.strip(line) for line in self._lines(canvas, axes))

    def _draw_curves(self, canvas: Canvas, curves: dict[int, _PlottedCurve], axes: _SweepAxes) -> None:
        x, y = axes.iops.at, axes.latency_ms.at
        for index, curve in curves.items():
            if index != self._curve:
                canvas.line(x(curve.iops), y(curve.mean_ms), "axis", every=2, plain=":")
        if self._curve not in curves:
            return
        curve = curves[self._curve]
        known = np.isfinite(curve.p99_ms)
        if known.sum() > 1:
            canvas.line(x(curve.iops[known]), y(curve.p99_ms[known]), "peak", every=3, plain=".")
        canvas.line(x(curve.iops), y(curve.mean_ms), "curve")
        self._draw_interval(canvas, curve, axes)
        for load, iops, mean in zip(curve.loads, x(curve.iops), y(curve.mean_ms), strict=True):
            canvas.mark(float(iops), float(mean), _MEASURED, "curve")
            canvas.label(float(iops), float(mean), f"{load:g}", "muted")
        for mark, optimum in optima(self._answer):
            canvas.mark(float(x(optimum.at.iops)), float(y(optimum.at.latency_ns / 1e6)), mark, "mark")

    def _draw_interval(self, canvas: Canvas, curve: _PlottedCurve, axes: _SweepAxes) -> None:
        """Draw the part of the curve in the interval brighter, in brackets."""
        low, high = interval(self._answer)
        if low > high or len(curve.loads) < 2:
            return
        iops, mean = curve.at(np.geomspace(low, max(high, low * 1.001), _SAMPLES))
        x, y = axes.iops.at(iops), axes.latency_ms.at(mean)
        canvas.line(x, y, "mark", plain="#")
        canvas.mark(float(x[-1]), float(y[-1]), "]", "mark")
        canvas.mark(float(x[0]), float(y[0]), "[", "mark")

    def _lines(self, canvas: Canvas, axes: _SweepAxes) -> Iterator[Spans]:
        title, legend = (
            " Latency (ms, log) over IOPS",
            f"  {_MEASURED} mean at each {self._knob or 'point'}  dotted p99",
        )
        legend += "  [ ] 95 % interval"
        of_curve = f" {self._name}".rstrip()
        fits = len(title) + len(of_curve) + len(legend) <= self.area.width
        yield [(title + (of_curve if fits else ""), "mark"), (legend, "text")]
        yield from plot_lines(self, canvas, axes.latency_ms, lambda value: tick_label(value, Unit.MILLISECONDS))
        yield [(line_below(axes.iops, canvas.cells, lambda value: tick_label(value, Unit.PER_SECOND)), "axis")]
