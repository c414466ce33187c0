"""Charts as SVG: lines, stacked areas, points with error bars, marks and bands, coloured by classes of the style."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from msgspec import Struct

from collectors.reports.documents.content import Band, DrawnAxis, DrawnChart, DrawnCurve, Form, Mark
from collectors.reports.documents.scale import (
    Scale,
    binary_ticks,
    log_ticks,
    round_ticks,
    short_number,
    time_label,
    time_ticks,
)
from engine.text import safe_text

WIDTH, HEIGHT = 400, 210
"""Size of the drawing; small, so that its letters can be read on a screen 360 pixels wide."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 12.0, 18.0, 34.0
_MARK_WIDTH = 3.0
"""Marks closer than this to the last one are left out."""
_LABEL_WIDTH, _LABEL_HEIGHT = 15.0, 11.0
"""Room for a label of a mark; those closer to the last one are left out."""


def svg_of(chart: DrawnChart) -> str:
    """Draw a chart; empty if none of its values is known."""
    drawing = _Drawing.of(chart)
    if drawing is None:
        return ""
    name = escape(safe_text(f"{chart.title}, {chart.unit}" if chart.unit else chart.title), quote=True)
    head = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">'
    return "".join((head, *drawing.parts(), "</svg>"))


def heights(chart: DrawnChart) -> list[tuple[DrawnCurve, tuple[float, ...], tuple[float, ...]]]:
    """Lower and upper edge of every curve; those of stacked areas lie on the areas before them."""
    found: list[tuple[DrawnCurve, tuple[float, ...], tuple[float, ...]]] = []
    base: tuple[float, ...] = ()
    for curve in chart.curves:
        low = base or (0.0,) * len(curve.y)
        if curve.form is Form.STACKED:
            base = tuple(below + value for below, value in zip(low, curve.y, strict=True))
            found.append((curve, low, base))
        else:
            found.append((curve, (0.0,) * len(curve.y), curve.y))
    return found


class _Drawing(Struct, frozen=True):
    chart: DrawnChart
    x: Scale
    y: Scale
    y_ticks: tuple[float, ...]

    @classmethod
    def of(cls, chart: DrawnChart) -> _Drawing | None:
        tops = [value for _, _, upper in heights(chart) for value in upper if math.isfinite(value)]
        tops += [value for curve in chart.curves for value in curve.high if math.isfinite(value)]
        across = [value for curve in chart.curves for value in curve.x if math.isfinite(value)]
        if not tops or not across:
            return None
        top = chart.most or max(tops)
        ticks = (binary_ticks if chart.unit.startswith("B") else round_ticks)(top, 4)
        y = Scale(0.0, ticks[-1], HEIGHT - _BOTTOM, _TOP)
        if chart.log_y:
            y, ticks = _logarithmic(tops)
        low, high = min(across), max(across)
        is_log = chart.axis is DrawnAxis.LOG
        if is_log:
            low, high = max(low, 1e-9), max(high, 1e-9)
            low, high = (low, high) if high > low * 1.001 else (low / 2, high * 2)
        x = Scale(low, high, _LEFT, WIDTH - _RIGHT, is_log)
        return cls(chart, x, y, ticks)

    def parts(self) -> Iterator[str]:
        yield from map(self._band, self.chart.bands)
        yield from self._grid()
        yield from self._axis()
        for number, (curve, low, high) in enumerate(heights(self.chart)):
            yield from self._curve(number, curve, low, high)
        yield from self._marks()

    def _grid(self) -> Iterator[str]:
        for tick in self.y_ticks:
            y = self.y.at(tick)
            yield f'<path class="grid" d="M{_LEFT:.0f} {y:.1f}H{WIDTH - _RIGHT:.0f}"/>'
            yield _text(_LEFT - 5, y + 4, short_number(tick, self.chart.unit), "end")

    def _axis(self) -> Iterator[str]:
        bottom = HEIGHT - _BOTTOM
        for tick, label in self._x_ticks():
            x = self.x.at(tick)
            yield f'<path class="axis" d="M{x:.1f} {bottom:.0f}v4"/>'
            yield _text(min(max(x, _LEFT + 8), WIDTH - 26), bottom + 15, label, "middle")
        yield f'<path class="axis" d="M{_LEFT:.0f} {bottom:.0f}H{WIDTH - _RIGHT:.0f}"/>'
        if self.chart.axis_title:
            yield _text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 5, self.chart.axis_title, "middle")

    def _x_ticks(self) -> Iterator[tuple[float, str]]:
        if self.chart.axis is DrawnAxis.TIME:
            start_ns = self.chart.start_ns + round(self.x.low * 1e9)
            for tick in time_ticks(self.x.high - self.x.low, start_ns, 5):
                yield self.x.low + tick, time_label(self.x.low + tick, self.chart.start_ns)
            return
        for tick in log_ticks(self.x.low, self.x.high):
            yield tick, short_number(tick)

    def _curve(self, number: int, curve: DrawnCurve, low: tuple[float, ...], high: tuple[float, ...]) -> Iterator[str]:
        colour = f"s{number % 6}"
        for first, last in _runs(high):
            points = [(self.x.at(curve.x[at]), self.y.at(high[at])) for at in range(first, last)]
            if curve.form is Form.STACKED and last - first > 1:
                under = [(self.x.at(curve.x[at]), self.y.at(low[at])) for at in range(first, last)]
                yield f'<path class="fill {colour}" d="{_path([*points, *reversed(under)])}Z"/>'
            if last - first == 1:
                yield f'<circle class="dot {colour}" cx="{points[0][0]:.1f}" cy="{points[0][1]:.1f}" r="2"/>'
            else:
                dashes = ' stroke-dasharray="5 4"' if curve.form is Form.OPEN_POINTS else ""
                yield f'<path class="line {colour}" d="{_path(points)}"{dashes}/>'
        if curve.form in (Form.POINTS, Form.OPEN_POINTS):
            yield from self._points(colour, curve)

    def _points(self, colour: str, curve: DrawnCurve) -> Iterator[str]:
        labelled: list[tuple[float, float]] = []
        for at, (value_x, value_y) in enumerate(zip(curve.x, curve.y, strict=True)):
            if not math.isfinite(value_y):
                continue
            x, y = self.x.at(value_x), self.y.at(value_y)
            if curve.low and curve.high:
                upper, lower = self.y.at(curve.high[at]), self.y.at(curve.low[at])
                yield f'<path class="line {colour}" d="M{x:.1f} {upper:.1f}V{lower:.1f}"/>'
            if curve.form is Form.OPEN_POINTS:
                yield f'<path class="line {colour}" d="M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5Z"/>'
            else:
                yield f'<circle class="dot {colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
            near = any(abs(x - x2) < _LABEL_WIDTH and abs(y - y2) < _LABEL_HEIGHT for x2, y2 in labelled)
            if curve.labels and not near:
                yield _text(min(x, WIDTH - 18), max(y - 8, 10), curve.labels[at], "middle")
                labelled.append((x, y))

    def _marks(self) -> Iterator[str]:
        drawn_x = shown_x = -math.inf
        for mark in sorted(self.chart.marks, key=lambda mark: mark.x):
            x = self.x.at(mark.x)
            if not self.x.low <= mark.x <= self.x.high or x - drawn_x < _MARK_WIDTH:
                continue
            drawn_x = x
            yield _mark(mark, x)
            if x - shown_x >= max(_LABEL_WIDTH, 6.5 * len(mark.label)):
                yield _text(min(x, WIDTH - 12), _TOP - 6, mark.label, "middle")
                shown_x = x

    def _band(self, band: Band) -> str:
        low, high = self.x.at(band.low), self.x.at(band.high)
        title = f"<title>{escape(safe_text(band.text))}</title>"
        size = f'width="{max(high - low, 1):.1f}" height="{HEIGHT - _BOTTOM - _TOP:.1f}"'
        return f'<rect class="band" x="{low:.1f}" y="{_TOP:.1f}" {size}>{title}</rect>'


def _logarithmic(values: list[float]) -> tuple[Scale, tuple[float, ...]]:
    """Vertical scale of powers of ten that holds all values above 0, and its ticks."""
    above = [value for value in values if value > 0] or [1.0]
    low, high = 10.0 ** math.floor(math.log10(min(above))), 10.0 ** math.ceil(math.log10(max(above)))
    high = high if high > low else low * 10
    return Scale(low, high, HEIGHT - _BOTTOM, _TOP, is_log=True), log_ticks(low, high)


def _mark(mark: Mark, x: float) -> str:
    title = f"<title>{escape(safe_text(mark.text or mark.label))}</title>"
    return f'<path class="mark" d="M{x:.1f} {_TOP:.1f}V{HEIGHT - _BOTTOM:.1f}">{title}</path>'


def _runs(values: tuple[float, ...]) -> Iterator[tuple[int, int]]:
    """First and last of each run of known values, the last exclusive."""
    first: int | None = None
    for at, value in enumerate((*values, math.nan)):
        if math.isfinite(value):
            first = at if first is None else first
        elif first is not None:
            yield first, at
            first = None


def _path(points: list[tuple[float, float]]) -> str:
    return f"M{'L'.join(f'{x:.1f} {y:.1f}' for x, y in points)}"


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(safe_text(text))}</text>'
