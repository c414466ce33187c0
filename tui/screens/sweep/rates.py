"""The part of the sweep screen that shows a search for rates: bounds, table, plot, answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.strip import Strip
from textual.widget import Widget

from collectors.field import Unit
from engine.rate_search.answer import RateAnswer, RateVerdict
from engine.rate_search.bounds import LoadClass
from engine.rate_search.grid import RateGrid
from engine.rate_search.plan import RatePlan, RatePoint
from engine.sweep.points import SweepPoints
from engine.sweep.trial import Trial
from tui.screens.sweep.answer import AnswerText
from tui.screens.sweep.body import SweepBody
from tui.screens.sweep.point_grid import PointGrid, SaidColumn
from tui.screens.sweep.rate_rows import CurveFigures, RateRow, RateState, curve_figures
from tui.screens.sweep.rate_words import rate_answer_text, rate_point_text, rate_verdict_text, rate_words
from tui.screens.sweep.shown import ShownMeasurement
from tui.screens.sweep.study_words import StudyWords
from tui.text.glyphs import glyphs_of
from tui.widgets.chart.axes import tick_label
from tui.widgets.plots import AXIS_CELLS, Canvas, PlotAxis, line_below, plot_lines
from tui.widgets.spans import Spanned, Spans

_CLASS = 12
"""Cells of a class: its word, and how many trials kept the limit."""
_METRICS = ("p99", "mean", "p50", "p99.9")
"""Figures of the plot where there is no limit."""


class RateBody(SweepBody[RateState]):
    """Draws a state; it keeps what was chosen: combination, limit, view, order."""

    PLAN = RatePlan
    VIEWS = ("table", "plot", "answer")
    PREFIX = "rate_"

    DEFAULT_CSS = """
    RateBody { height: 1fr; }
    RateBody Vertical { width: 1fr; height: 1fr; }
    RateBody Spanned { height: 1fr; }
    RateBody #rate_right { margin: 0 0 0 1; }
    """

    def __init__(self) -> None:
        super().__init__("rate_body")
        self._curve = self._limit = 0
        self._metric = _METRICS[0]
        self._has_moved = False
        """Whether the operator moved the cursor, which follows the answer until then."""
        self._placed: RatePoint | None = None

    def compose(self) -> ComposeResult:
        """Bounds above, the views below."""
        yield RateBounds(id="rate_bounds")
        with Horizontal():
            with Vertical(id="rate_left"):
                yield PointGrid[RateRow]("rate_points", name_title="Rate/s", texts_at=1, id="rate_table")
                yield AnswerText(id="rate_answer")
            with Vertical(id="rate_right"):
                yield RatePlot(id="rate_plot")

    def show(self, state: RateState, shown: ShownMeasurement, *, is_large: bool) -> None:
        """Draw a search, beside the closed loop that was measured before it."""
        curves, limits, closed = len(state.plan.curves), state.plan.limits, shown.closed_loop()
        self._curve, self._limit = min(self._curve, curves - 1), min(self._limit, max(len(limits), 1) - 1)
        found = [curve_figures(state, curve) for curve in range(curves)]
        here = found[self._curve]
        self.query_one(RateBounds).show(here, self._limit, state.plan.search.goal.width)
        bounds = self.query_one("#rate_bounds", Widget)
        bounds.display, bounds.styles.height = bool(limits), len(limits) + 1 if here.grid else 1
        self._show_table(state, here)
        answer = here.answers.limits[self._limit] if limits else None
        metric = self._metric if answer is None else answer.limit.metric
        curve = None if closed is None else _closed_curve(closed, self._curve, metric)
        self.query_one(RatePlot).show(here.rows, metric, answer, self._limit, curve)
        self.query_one(AnswerText).show(list(rate_answer_text(state, found, self._curve)))
        self._lay_out(is_large=is_large)

    def _show_table(self, state: RateState, here: CurveFigures) -> None:
        limits = [SaidColumn(str(number), limit.text, _CLASS) for number, limit in enumerate(state.plan.limits)]
        self.grid.show_points(here.rows, (*limits[self._limit :], *limits[: self._limit]))
        row = self.row
        if self._placed is not None and row is not None and row.point != self._placed:
            self._has_moved = True
        if here.best is not None and not self._has_moved:
            self._placed = RatePoint(self._curve, here.best)
            self.grid.move_to_key(f"{self._curve}:{here.best!r}")

    def _lay_out(self, *, is_large: bool) -> None:
        for view in self.VIEWS:
            self.view_widget(view).display = is_large or view == self._view
        self.query_one("#rate_left").display = is_large or self._view != "plot"
        self.query_one("#rate_right").display = is_large or self._view == "plot"

    def words(self, state: RateState) -> StudyWords:
        """Say how far the search is."""
        return rate_words(state)

    def name_of(self, state: RateState, point: RatePoint) -> str:
        """Name a rate with its combination."""
        return state.plan.point_name(point)

    def texts(self, state: RateState, width: int) -> tuple[str, str]:
        """Verdict, and the rate under the cursor."""
        here, row = curve_figures(state, self._curve), self.row
        return (
            rate_verdict_text(state, self._curve, here, width),
            " " if row is None else rate_point_text(state, row, width),
        )

    @property
    def row(self) -> RateRow | None:
        """The rate under the cursor."""
        row: RateRow | None = self.grid.row
        return row

    def chosen(self, _state: RateState) -> tuple[object, ...]:
        """Return combination, limit, figure, view and rate."""
        here = self._curve, self._limit, self._metric, self._view
        return *here, self.row and self.row.point

    def next_figure(self, state: RateState) -> None:
        """Put the next limit in front; without limits, draw the next figure."""
        self._limit = (self._limit + 1) % max(len(state.plan.limits), 1)
        self._metric = _METRICS[(_METRICS.index(self._metric) + 1) % len(_METRICS)]

    def next_curve(self, state: RateState) -> None:
        """Show the next combination."""
        self._curve, self._has_moved = (self._curve + 1) % len(state.plan.curves), False
        self._placed = None


def _closed_curve(points: SweepPoints, curve: int, metric: str) -> ClosedCurve | None:
    """Take the medians by load of the combination that belongs to a search; None without measurements."""
    trials = points.trials[curve] if curve < len(points.trials) else ()
    by_load: dict[float, list[Trial]] = {}
    for trial in trials:
        by_load.setdefault(trial.load, []).append(trial)
    if not by_load:
        return None
    groups = [group for _, group in sorted(by_load.items())]
    iops = np.array([np.median([trial.iops for trial in group]) for group in groups], np.float64)
    latencies = [[trial.latency_of(metric) for trial in group] for group in groups]
    medians = [
        np.median(known) / 1e6 if (known := [v for v in each if v is not None]) else math.nan for each in latencies
    ]
    return ClosedCurve(iops, np.array(medians, np.float64))


_Bounds: TypeAlias = tuple[float | None, float | None]
_TEXT = 37
"""Cells of the bounds as figures."""
_LEAST_BAR = 8
_SCALE = "I/Os per second, log"


class RateBounds(Spanned, inherit_bindings=False):
    """A line for each limit: what keeps it, what exceeds it, and what is open between."""

    can_focus = False

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._figures: CurveFigures | None = None
        self._front = 0
        self._goal = 0.05

    def show(self, figures: CurveFigures, front: int, goal: float) -> None:
        """Take the figures of a combination, the limit in front, and the distance of the bounds that is enough."""
        self._figures, self._front, self._goal = figures, front, goal
        self.repaint()

    def draw_lines(self) -> list[Strip]:
        """Title, a line for each limit."""
        figures = self._figures
        if figures is None or figures.grid is None:
            return self.hint("bounds: the maximum of the load is measured first; no rate above it is tried")
        name = max(len(answer.limit.text) for answer in figures.answers.limits)
        bar = max(self.area.width - name - _TEXT - 4, _LEAST_BAR)
        low, high = figures.grid.rate(figures.grid.last), figures.grid.highest
        ends = f"{low:,.0f}", f"{high:,.0f}"
        scale = ends[0] + _SCALE.center(max(bar - len(ends[0]) - len(ends[1]), 0)) + ends[1]
        fits = len(scale) <= bar and f" {_SCALE} " in scale
        head = (
            f" {'limit':<{name}} {(scale if fits else f'{ends[0]} .. {ends[1]}/s'[:bar]):<{bar}}  bounds in I/Os per s"
        )
        lines: list[Spans] = [[(head.ljust(self.area.width), "head")]]
        for number, answer in enumerate(figures.answers.limits):
            style = "mark" if number == self._front else "text"
            is_open = answer.lower is None or answer.upper is None
            passing = figures.passing[number] if is_open and figures.passing else (None, None)
            line = [(f" {answer.limit.text:<{name}} ", style), *self._bar(answer, passing, figures.grid, bar)]
            lines.append([*line, (f"  {self._words(answer, passing)}", style)])
        return self.filled(map(self.strip, lines))

    def _bar(self, answer: RateAnswer, passing: _Bounds, grid: RateGrid, width: int) -> Spans:
        """Draw rates that keep it, open ones, and those that exceed it."""
        glyphs = glyphs_of(self)
        low = passing[0] if answer.lower is None else answer.lower.rate
        high = passing[1] if answer.upper is None else answer.upper.rate
        lower = 0 if low is None else self._cell(low, grid, width) + 1
        upper = width if high is None else self._cell(high, grid, width)
        if lower and high is not None:
            # Bounds in one cell are distinguished by their figures.
            lower = min(lower, max(upper, 1))
        upper = max(upper, lower)
        return [
            (glyphs.strengths[-1] * lower, "muted" if answer.lower is None else "curve"),
            ("?" * (upper - lower), "muted"),
            ("x" * (width - upper), "muted" if answer.upper is None else "failed"),
        ]

    def _cell(self, rate: float, grid: RateGrid, width: int) -> int:
        low, high = math.log(grid.rate(grid.last)), math.log(grid.highest)
        share = (math.log(max(rate, 1e-9)) - low) / (high - low) if high > low else 1.0
        return min(max(round(share * (width - 1)), 0), width - 1)

    def _words(self, answer: RateAnswer, passing: _Bounds) -> str:
        lower, upper = answer.lower, answer.upper
        if answer.verdict is RateVerdict.ALL_KEEP and lower is not None:
            return f"{lower.rate:,.0f} keep it: the highest tried"
        if answer.verdict is RateVerdict.NONE_KEEPS and upper is not None:
            return f"even {upper.rate:,.0f} exceed it"
        if lower is None or upper is None:
            low = passing[0] if lower is None else lower.rate
            high = passing[1] if upper is None else upper.rate
            ends = " .. ".join("?" if each is None else f"{each:,.0f}" for each in (low, high))
            return "no bounds yet" if low is None and high is None else f"about {ends} so far"
        width = upper.rate / lower.rate - 1
        share = f"{100 * width:.1f}" if width < 0.995 else f"{100 * width:.0f}"
        return f"{lower.rate:,.0f} .. {upper.rate:,.0f} {share} % (<= {100 * self._goal:g} %)"


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
