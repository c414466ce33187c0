"""The part of the sweep screen that shows an isolation curve: table, plot, seconds, answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.strip import Strip

from collectors.field import Unit
from engine.isolation.study import IsolationPoint, IsolationStudy, point_name
from engine.text import safe_text
from tui.screens.sweep.answer import AnswerText
from tui.screens.sweep.body import SweepBody
from tui.screens.sweep.isolation_rows import (
    IsolationRow,
    IsolationState,
    isolation_answer_text,
    isolation_point_text,
    isolation_rows,
    isolation_verdict_text,
    isolation_words,
)
from tui.screens.sweep.point_grid import PointGrid
from tui.screens.sweep.shown import ShownMeasurement
from tui.screens.sweep.study_words import StudyWords
from tui.sweep.state import RUNNING_PHASES
from tui.text.glyphs import glyphs_of
from tui.widgets.chart.axes import tick_label
from tui.widgets.plots import AXIS_CELLS, Canvas, PlotAxis, labels_below, plot_lines
from tui.widgets.spans import Spanned, Spans


class IsolationBody(SweepBody[IsolationState]):
    """Draws a state; it keeps what was chosen: figure, view, order."""

    PLAN = IsolationStudy
    VIEWS = ("table", "plot", "seconds", "answer")
    PREFIX = "isolation_"

    DEFAULT_CSS = """
    IsolationBody { height: 1fr; }
    IsolationBody Vertical { width: 1fr; height: 1fr; }
    IsolationBody Spanned { height: 1fr; }
    IsolationBody #isolation_right { margin: 0 0 0 1; }
    """

    def __init__(self) -> None:
        super().__init__("isolation_body")
        self._figure = FIGURES[0]
        self._placed: int | None = None
        """Number of the point that the cursor was put on; it follows what is measured until it is moved."""
        self._has_moved = False

    def compose(self) -> ComposeResult:
        """Table and answer on the left, plots on the right."""
        with Horizontal():
            with Vertical(id="isolation_left"):
                yield PointGrid[IsolationRow]("isolation_points", name_title="Cap", id="isolation_table")
                yield AnswerText(id="isolation_answer")
            with Vertical(id="isolation_right"):
                yield IsolationPlot(id="isolation_plot")
                yield IsolationSeconds(id="isolation_seconds")

    def show(self, state: IsolationState, _shown: ShownMeasurement, *, is_large: bool) -> None:
        """Draw a curve."""
        rows, least = isolation_rows(state), 1 / state.plan.within
        self.grid.show_points(rows)
        self._follow(state, rows)
        row = self.row
        self.query_one(IsolationPlot).show(rows, state.plan, self._figure, row)
        self.query_one(IsolationSeconds).show(row, least)
        self.query_one(AnswerText).show(list(isolation_answer_text(state)))
        self._lay_out(is_large=is_large)

    def _follow(self, state: IsolationState, rows: list[IsolationRow]) -> None:
        row = self.row
        if self._placed is not None and row is not None and row.number != self._placed:
            self._has_moved = True
        if rows and not self._has_moved and state.phase in RUNNING_PHASES:
            self._placed = rows[-1].number
            self.grid.move_to_key(str(self._placed))

    def _lay_out(self, *, is_large: bool) -> None:
        for view in self.VIEWS:
            self.view_widget(view).display = is_large or view == self._view
        self.query_one("#isolation_left").display = is_large or self._view in {"table", "answer"}
        self.query_one("#isolation_right").display = is_large or self._view in {"plot", "seconds"}

    def words(self, state: IsolationState) -> StudyWords:
        """Say how far the curve is."""
        return isolation_words(state)

    def name_of(self, _state: IsolationState, point: IsolationPoint) -> str:
        """Name a point by what the aggressor does."""
        return point_name(point.aggressor, point.cap)

    def texts(self, state: IsolationState, width: int) -> tuple[str, str]:
        """Verdict, and the point under the cursor."""
        row = self.row
        return isolation_verdict_text(state, width), " " if row is None else isolation_point_text(row, width)

    @property
    def row(self) -> IsolationRow | None:
        """The point under the cursor."""
        row: IsolationRow | None = self.grid.row
        return row

    def chosen(self, _state: IsolationState) -> tuple[object, ...]:
        """Return figure, view and point."""
        return self._figure, self._view, self.row and self.row.number

    def next_figure(self, _state: IsolationState) -> None:
        """Draw the next figure over the load."""
        self._figure = FIGURES[(FIGURES.index(self._figure) + 1) % len(FIGURES)]

    def next_curve(self, state: IsolationState) -> None:
        """Move to the first point of the next cap."""
        row, rows = self.row, isolation_rows(state)
        firsts = {each.point.cap: each.number for each in reversed(rows) if each.point.aggressor is not None}
        numbers = sorted(firsts.values())
        if row is not None and numbers:
            here = row.number
            self.grid.move_to_key(str(next((each for each in numbers if each > here), numbers[0])))


Floats = NDArray[np.float64]
_LEAST = (24, 6)
FIGURES = ("p99_ms", "mean_ms", "isolation_p5")
_TITLES = {"p99_ms": "victim p99 (ms)", "mean_ms": "victim mean (ms)", "isolation_p5": "isolation p5"}


class IsolationPlot(Spanned, inherit_bindings=False):
    """A figure of the victim over the queue depth of the aggressor."""

    can_focus = False

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._rows: Sequence[IsolationRow] = ()
        self._study: IsolationStudy | None = None
        self._figure = FIGURES[0]
        self._front: IsolationRow | None = None

    def show(
        self, rows: Sequence[IsolationRow], study: IsolationStudy, figure: str, front: IsolationRow | None
    ) -> None:
        """Take the rows, what they are of, the figure to draw, and the row under the cursor, whose line is in front."""
        self._rows, self._study, self._figure, self._front = rows, study, figure, front
        self.repaint()

    def draw_lines(self) -> list[Strip]:
        """Title, plot, axis of queue depths."""
        lines = self._curves()
        if not lines or self._study is None or self.area.width < _LEAST[0] or self.area.height < _LEAST[1]:
            return self.hint("victim over the load of the aggressor: nothing was measured beside it yet")
        depths = sorted({depth for points in lines.values() for depth, _ in points})
        values = [value for points in lines.values() for _, value in points]
        levels = dict(self._levels(self._study))
        axis = _axis([*values, *levels.values()], is_share=self._figure == "isolation_p5")
        canvas = Canvas(self.area.height - 3, self.area.width - AXIS_CELLS - 1, glyphs_of(self))
        for text, value in levels.items():
            y = float(axis.at(value))
            canvas.line(np.array([0.0, 1.0]), np.array([y, y]), "peak", every=3, plain="-")
            canvas.label(0.0, y, text, "peak")
        front = None if self._front is None else _line_of(self._front)
        for name in sorted(lines, key=lambda name: name == front):
            self._draw(canvas, name, lines[name], depths, axis, is_front=name == front)
        title = f" {_TITLES[self._figure]} over the queue depth of the aggressor"
        return self.filled(map(self.strip, self._lines(canvas, axis, title, depths)))

    def _curves(self) -> dict[str, list[tuple[float, float]]]:
        """Depth and figure of the points by line, with rising depth."""
        found: dict[str, list[tuple[float, float]]] = {}
        for row in self._rows:
            value, load = row.figure(self._figure), row.point.aggressor
            if load is not None and value is not None and (value or self._figure == "isolation_p5"):
                found.setdefault(_line_of(row), []).append((float(load.queue_depth), value))
        return {name: sorted(points) for name, points in found.items()}

    def _levels(self, study: IsolationStudy) -> Iterator[tuple[str, float]]:
        if self._figure == "isolation_p5":
            yield "isolated from here", 1 / study.within
        elif study.baseline is not None and self._figure == f"{study.figure.value}_ms":
            alone_ms = study.baseline.typical_ns / 1e6
            if alone_ms > 0:
                yield "alone", alone_ms
                yield f"{study.within:g} x", alone_ms * study.within

    def _draw(
        self,
        canvas: Canvas,
        name: str,
        points: Sequence[tuple[float, float]],
        depths: Sequence[float],
        axis: PlotAxis,
        *,
        is_front: bool,
    ) -> None:
        style = "curve" if is_front else "axis"
        xs = np.array([_x(depth, depths) for depth, _ in points])
        ys = axis.at(np.array([value for _, value in points]))
        if len(points) > 1:
            canvas.line(xs, ys, style, every=1 if is_front else 2, plain="*" if is_front else ".")
        for x, y in zip(xs.tolist(), ys.tolist(), strict=True):
            canvas.mark(x, y, "o" if is_front else "+", style)
        canvas.label(float(xs[-1]), float(ys[-1]), safe_text(name), style)

    def _lines(self, canvas: Canvas, axis: PlotAxis, title: str, depths: Sequence[float]) -> Iterator[Spans]:
        yield [(title, "mark"), ("   o cap of the cursor  + others", "text")]
        is_share = self._figure == "isolation_p5"
        yield from plot_lines(self, canvas, axis, _share_label if is_share else _latency_label)
        labels = [(_x(depth, depths), f"{depth:.0f}") for depth in depths]
        yield [(labels_below(labels, canvas.cells), "axis")]


class IsolationSeconds(Spanned, inherit_bindings=False):
    """The isolation factor of each second of a point, and its 5th percentile."""

    can_focus = False

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._row: IsolationRow | None = None
        self._least = 1.0

    def show(self, row: IsolationRow | None, least: float) -> None:
        """Take the point under the cursor, and the factor from which it is isolated."""
        self._row, self._least = row, least
        self.repaint()

    def draw_lines(self) -> list[Strip]:
        """Title, plot, axis of seconds."""
        row = self._row
        known = [] if row is None else [(at, value) for at, value in enumerate(row.factors) if value is not None]
        if row is None or not known or self.area.width < _LEAST[0] or self.area.height < _LEAST[1]:
            return self.hint("isolation per second: not known at this point")
        axis = _axis([1.0, *(value for _, value in known)], is_share=True)
        canvas = Canvas(self.area.height - 3, self.area.width - AXIS_CELLS - 1, glyphs_of(self))
        last = max(len(row.factors) - 1, 1)
        ends, levels = np.array([0.0, 1.0]), [("", self._least, "axis")]
        if row.low_factor is not None:
            levels.append((f"p5 {row.low_factor:.2f}", row.low_factor, "peak"))
        for text, value, style in levels:
            canvas.line(ends, np.repeat(axis.at(value), 2), style, every=3, plain="-")
            canvas.label(0.0, float(axis.at(value)), text, style)
        xs = np.array([at / last for at, _ in known])
        ys = axis.at(np.array([value for _, value in known]))
        if len(known) > 1:
            canvas.line(xs, ys, "curve")
        for x, y in zip(xs.tolist(), ys.tolist(), strict=True):
            canvas.mark(x, y, "o", "curve")
        return self.filled(map(self.strip, self._lines(canvas, axis, row)))

    def _lines(self, canvas: Canvas, axis: PlotAxis, row: IsolationRow) -> Iterator[Spans]:
        yield [(f" isolation of each second, {safe_text(row.sentence)}", "mark")]
        yield from plot_lines(self, canvas, axis, _share_label)
        end = f"{len(row.factors)} s"
        yield [(f"{' ' * (AXIS_CELLS + 1)}1{end.rjust(canvas.cells - 1)}", "axis")]


def _axis(values: Sequence[float], *, is_share: bool) -> PlotAxis:
    """Latencies in logarithms, shares from 0."""
    if is_share:
        return PlotAxis(0.0, max(*values, 1.0) * 1.05)
    return PlotAxis(min(values) / 1.2, max(max(values) * 1.2, min(values) * 2), is_log=True)


def _latency_label(latency_ms: float) -> str:
    return tick_label(latency_ms, Unit.MILLISECONDS)


def _share_label(share: float) -> str:
    return f"{share:.2f}".removesuffix("0")


def _line_of(row: IsolationRow) -> str:
    load = row.point.aggressor
    return "alone" if load is None else f"{row.point.cap.text} {load.block}"


def _x(depth: float, depths: Sequence[float]) -> float:
    """Position of a depth among those measured, in logarithms; one alone is in the middle."""
    low, high = depths[0], depths[-1]
    return 0.5 if high <= low else math.log(depth / low) / math.log(high / low)
