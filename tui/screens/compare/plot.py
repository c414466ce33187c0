"""Curves of A and B on the same axes."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from textual.strip import Strip

from collectors.field import Unit
from tui.screens.compare.curves import CurvePair, SideCurve
from tui.text.format import span_text
from tui.text.glyphs import glyphs_of
from tui.text.safe import fit
from tui.widgets.chart.axes import tick_label
from tui.widgets.plot.axis import AXIS_CELLS, PlotAxis, Rounding, line_below, plot_lines
from tui.widgets.plot.canvas import Canvas
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
