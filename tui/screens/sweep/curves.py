"""The part of the sweep screen that shows a sweep: table, plot, map, targets, answer."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical

from engine.sweep.knee import Answer
from engine.sweep.points import Point
from tui.screens.sweep.body import SweepBody
from tui.sweep.rows import PointRow, point_rows
from tui.sweep.state import SweepState
from tui.sweep.words import answer_text, curve_name, point_text, verdict_text
from tui.widgets.sweep.answer import AnswerText
from tui.widgets.sweep.heat import SweepMap, map_grid
from tui.widgets.sweep.lanes import TargetLanes
from tui.widgets.sweep.plot import SweepPlot
from tui.widgets.sweep.point_grid import PointGrid

_MOST_LINES = 14
"""Most lines of the map and of the lanes beside the others."""


class CurvesBody(SweepBody):
    """Draws a state; it keeps what was chosen: view, order. What it draws belongs to the curve under the cursor."""

    VIEWS = ("table", "plot", "map", "targets", "answer")

    DEFAULT_CSS = """
    CurvesBody { layout: horizontal; }
    CurvesBody, CurvesBody Vertical { height: 1fr; }
    CurvesBody Spanned { height: 1fr; }
    CurvesBody Vertical { width: 1fr; }
    CurvesBody.-large #table { height: 2fr; }
    CurvesBody.-large #plot { height: 2fr; }
    CurvesBody.-large #sweep_right { margin: 0 0 0 1; }
    """

    def __init__(self) -> None:
        super().__init__("sweep_body")
        self._curve = 0

    def compose(self) -> ComposeResult:
        """Table and answer on the left, drawings on the right."""
        with Vertical(id="sweep_left"):
            yield PointGrid[PointRow]("sweep_points", name_title="Point", id="table")
            yield AnswerText(id="answer")
        with Vertical(id="sweep_right"):
            yield SweepPlot(id="plot")
            yield SweepMap(id="map")
            yield TargetLanes(id="targets")

    def show(
        self, state: SweepState, answers: tuple[Answer | None, ...], study: Sequence[str], *, is_large: bool
    ) -> None:
        """Draw a sweep; `study` are the tables of the preset that it is a part of."""
        rows = point_rows(state, answers)
        self.grid.show_points(rows)
        row = self.row
        self._curve = 0 if row is None else min(row.point.curve, len(answers) - 1)
        self.query_one(AnswerText).show(list(answer_text(state, answers, self._curve)), list(study))
        self._draw_rows(state, answers[self._curve], rows)
        self._lay_out(state, is_large=is_large)

    def _draw_rows(self, state: SweepState, answer: Answer | None, rows: list[PointRow]) -> None:
        row = self.row
        at = None if row is None else row.point
        knob = "" if state.plan.load is None else state.plan.load.knob.key
        self.query_one(SweepPlot).show(rows, self._curve, answer, curve_name(state, self._curve), knob)
        self.query_one(SweepMap).show(map_grid(state.plan, rows, self._curve), rows, at)
        self.query_one(TargetLanes).show(row, "" if at is None else state.plan.point_name(at))

    def _lay_out(self, state: SweepState, *, is_large: bool) -> None:
        """Show all views that have something to show, or the chosen one where there is no room for all."""
        self.set_class(is_large, "-large")
        self._offered = tuple(view for view in self.VIEWS if _has(state, view))
        for view in self.VIEWS:
            widget = self.view_widget(view)
            widget.display = view in self._offered if is_large else view == self._view
            if not is_large:
                widget.styles.height = None  # What the style sheet says, in a large window again, too.
        if is_large:
            self._fit_to_plan(state)
        for side in ("#sweep_left", "#sweep_right"):
            column = self.query_one(side)
            column.display = any(child.display for child in column.children)

    def _fit_to_plan(self, state: SweepState) -> None:
        """Give map and lanes the lines they need, which depend on the axes only; the plot gets the rest."""
        targets = max((len(trial.targets) for trials in state.points.trials for trial in trials), default=0)
        for view, lines in (("map", len(state.plan.curves)), ("targets", targets + 1)):
            self.view_widget(view).styles.height = min(lines + 3, _MOST_LINES)

    def texts(self, state: SweepState, answers: tuple[Answer | None, ...], width: int) -> tuple[str, str]:
        """Verdict of the curve under the cursor, and its point."""
        row = self.row
        verdict = verdict_text(state, self._curve, answers[self._curve], width)
        return verdict, " " if row is None else point_text(state, row, width)

    @property
    def row(self) -> PointRow | None:
        """The point under the cursor."""
        row: PointRow | None = self.grid.row
        return row

    @property
    def chosen(self) -> tuple[object, ...]:
        """What was chosen: the drawing depends on it."""
        return self._view, self.row and self.row.point

    def go_to(self, point: Point) -> None:
        """Move the cursor to a point."""
        self.grid.move_to_key(f"{point.curve}:{point.load}")

    def next_figure(self) -> None:
        """Show the next figure on the map."""
        self.query_one(SweepMap).next_figure()

    def next_curve(self, state: SweepState) -> None:
        """Move to the first point of the next curve."""
        curve = (self._curve + 1) % len(state.plan.curves)
        self.go_to(Point(curve, state.plan.curves[curve].search.loads[0]))


def _has(state: SweepState, view: str) -> bool:
    """Whether a view has something to show: a map needs two axes, lanes several targets."""
    match view:
        case "map":
            return state.plan.load is not None and len(state.plan.axes) > 1
        case "targets":
            return any(trial.targets for trials in state.points.trials for trial in trials)
        case _:
            return True
