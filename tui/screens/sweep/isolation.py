"""The part of the sweep screen that shows an isolation curve: table, plot, seconds, answer."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from tui.screens.sweep.body import SweepBody
from tui.sweep.isolation_rows import IsolationRow, isolation_rows
from tui.sweep.isolation_state import IsolationState
from tui.sweep.isolation_words import isolation_answer_text, isolation_point_text, isolation_verdict_text
from tui.sweep.state import RUNNING_PHASES
from tui.widgets.sweep.answer import AnswerText
from tui.widgets.sweep.isolation_plot import FIGURES, IsolationPlot, IsolationSeconds
from tui.widgets.sweep.point_grid import PointGrid


class IsolationBody(SweepBody):
    """Draws a state; it keeps what was chosen: figure, view, order."""

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

    def show(self, state: IsolationState, *, is_large: bool) -> None:
        """Draw a curve."""
        rows, least = isolation_rows(state), 1 / state.study.within
        self.grid.show_points(rows)
        self._follow(state, rows)
        row = self.row
        self.query_one(IsolationPlot).show(rows, state.study, self._figure, row)
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

    def texts(self, state: IsolationState, width: int) -> tuple[str, str]:
        """Verdict, and the point under the cursor."""
        row = self.row
        return isolation_verdict_text(state, width), " " if row is None else isolation_point_text(row, width)

    @property
    def row(self) -> IsolationRow | None:
        """The point under the cursor."""
        row: IsolationRow | None = self.grid.row
        return row

    @property
    def chosen(self) -> tuple[object, ...]:
        """What was chosen: the drawing depends on it."""
        return self._figure, self._view, self.row and self.row.number

    def next_figure(self) -> None:
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
