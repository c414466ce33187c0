"""Curves of A and B on the same axes."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from textual.strip import Strip

from collectors.field import Unit
from tui.compare.curves import CurvePair, SideCurve
from tui.text.format import span_text
from tui.text.glyphs import glyphs_of
from tui.text.safe import fit
from tui.widgets.chart.axes import tick_label
from tui.widgets.spans import Spanned, Spans
from tui.widgets.sweep.canvas import Canvas

_AXIS = 7
"""Cells of the labels at the left."""
_LEAST = (24, 4)
STYLES = {"A": ("curve", 1, "a"), "B": ("peak", 2, "b")}
"""Style, every n-th dot, and the character where there is no braille."""

Floats = NDArray[np.float64]


class _Scale(Struct, frozen=True):
    low: float
    high: float
    is_log: bool = False

    @classmethod
    def of(cls, *values: Floats, is_log: bool = False, from_zero: bool = False) -> _Scale:
        every = np.concatenate(values)
        every = every[np.isfinite(every) & ((every > 0) | (not is_log))]
        low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
        if is_log:
            low = max(low, 1e-6)
            return cls(low, max(high, low * 1.01), is_log=True)
        low = min(low, 0.0) if from_zero else low
        return cls(low, high if high > low else low + (abs(low) or 1.0))

    def share(self, values: Floats) -> Floats:
        if self.is_log:
            values = np.log(np.maximum(values, self.low) / self.low) / math.log(self.high / self.low)
            return np.asarray(values, np.float64)
        return np.asarray((values - self.low) / (self.high - self.low), np.float64)

    def value(self, share: float) -> float:
        if self.is_log:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + share * (self.high - self.low)


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

    def on_resize(self) -> None:
        """Draw in the new size."""
        self.repaint()

    def draw_lines(self) -> list[Strip]:
        """Title with legend, plot, axis."""
        overlay = self._overlay
        if overlay is None or self.area.width < _LEAST[0] or self.area.height < _LEAST[1]:
            return self.filled(())
        if not overlay.is_known:
            return self.hint(f"{overlay.title}: not known")
        x = _Scale.of(overlay.a.x, overlay.b.x, is_log=overlay.is_log, from_zero=overlay.x_unit is None)
        is_share = overlay.y_unit is Unit.PERCENT and overlay.x_unit is not None
        y = _Scale(0.0, 100.0) if is_share else _Scale.of(overlay.a.y, overlay.b.y, from_zero=True)
        rows, cells = self.area.height - 3, self.area.width - _AXIS - 1
        canvas = Canvas(max(rows, 1), cells, glyphs_of(self))
        for name, curve in (("A", overlay.a), ("B", overlay.b)):
            _draw(canvas, curve, (x, y), name)
        return self.filled(self.strip(line) for line in self._lines(overlay, canvas, x, y))

    def _lines(self, overlay: CurvePair, canvas: Canvas, x: _Scale, y: _Scale) -> list[Spans]:
        glyphs, rows = glyphs_of(self), max(self.area.height - 3, 1)
        cells = self.area.width - _AXIS - 1
        legend = [
            (f" A {'line' if glyphs.braille else 'a'}", "curve"),
            (f" B {'dots' if glyphs.braille else 'b'}", "peak"),
        ]
        room = self.area.width - sum(len(text) for text, _ in legend)
        title = f" {overlay.title}"
        lines: list[Spans] = [[(fit(title, max(room, 0), glyphs.ellipsis).rstrip(), "mark"), *legend]]
        for row in range(rows):
            label = ""
            if row in {0, rows - 1} or (rows > 6 and row == (rows - 1) // 2):
                value = y.value(1 - row / max(rows - 1, 1))
                label = tick_label(value, overlay.y_unit)
                label += "%" if overlay.y_unit is Unit.PERCENT else ""
            bar = glyphs.tick_left if label else glyphs.vertical
            lines.append([(label.rjust(_AXIS) + bar, "axis"), *canvas.row(row)])
        lines.append([(" " * _AXIS + glyphs.corner + glyphs.horizontal * cells, "axis")])
        lines.append([(_x_labels(overlay, x, cells), "axis")])
        return lines


def _draw(canvas: Canvas, curve: SideCurve, scales: tuple[_Scale, _Scale], name: str) -> None:
    if not len(curve.x):
        return
    style, every, plain = STYLES[name]
    xs, ys = scales[0].share(curve.x), scales[1].share(curve.y)
    if len(xs) == 1:
        canvas.mark(float(xs[0]), float(ys[0]), plain, style)
        return
    canvas.line(xs, ys, style, every=every, plain=plain)


def _x_labels(overlay: CurvePair, scale: _Scale, cells: int) -> str:
    text = [" "] * (_AXIS + 1 + cells)
    shares = [number / 4 for number in range(5)] if cells >= 50 else [0.0, 0.5, 1.0]
    for share in shares:
        label = _x_label(overlay, scale.value(share))
        middle = _AXIS + 1 + round(share * (cells - 1))
        start = min(max(middle - len(label) // 2, _AXIS + 1), len(text) - len(label))
        if all(char == " " for char in text[max(start - 1, 0) : start + len(label)]):
            text[start : start + len(label)] = label
    return "".join(text)


def _x_label(overlay: CurvePair, value: float) -> str:
    if overlay.x_unit is None:
        return span_text(value)
    return f"{tick_label(value, overlay.x_unit)} {overlay.x_unit}".rstrip()
