"""The part of the sweep screen that shows a search for rates: bounds, table, plot, answer."""

from __future__ import annotations

import math

import numpy as np
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from engine.rate_search.plan import RatePoint
from engine.sweep.points import SweepPoints
from engine.sweep.trial import Trial
from tui.screens.sweep.body import SweepBody
from tui.sweep.rate_rows import CurveFigures, RateRow, curve_figures
from tui.sweep.rate_state import RateState
from tui.sweep.rate_words import rate_answer_text, rate_point_text, rate_verdict_text
from tui.widgets.sweep.answer import AnswerText
from tui.widgets.sweep.point_grid import PointGrid, SaidColumn
from tui.widgets.sweep.rate_bounds import RateBounds
from tui.widgets.sweep.rate_plot import ClosedCurve, RatePlot

_CLASS = 12
"""Cells of a class: its word, and how many trials kept the limit."""
_METRICS = ("p99", "mean", "p50", "p99.9")
"""Figures of the plot where there is no limit."""


class RateBody(SweepBody):
    """Draws a state; it keeps what was chosen: combination, limit, view, order."""

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

    def show(self, state: RateState, closed: SweepPoints | None, *, is_large: bool) -> None:
        """Draw a search, beside the closed loop that was measured before it."""
        curves, limits = len(state.plan.curves), state.plan.limits
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

    @property
    def chosen(self) -> tuple[object, ...]:
        """What was chosen: the drawing depends on it."""
        here = self._curve, self._limit, self._metric, self._view
        return *here, self.row and self.row.point

    def next_limit(self, state: RateState) -> None:
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
