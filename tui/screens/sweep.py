"""The sweep: its points while they are measured, and what they say."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from collectors.latency.subjects import WHOLE_LOAD, LatencySubject
from collectors.model import Frame
from engine.events import Event
from engine.sweep.knee import Answer
from engine.sweep.points import Point
from engine.text import safe_text
from tui.app_state import AppState
from tui.keys import bindings_of
from tui.screen_registry import SWEEP
from tui.screens.base import View
from tui.screens.dialogs import confirm_write
from tui.sweep.answers import CurveAnswers
from tui.sweep.rows import SORT_KEYS, PointRow, point_rows, sorted_rows
from tui.sweep.session import SweepSession
from tui.sweep.state import SweepPhase, SweepState, recorded_state
from tui.sweep.words import (
    MARKS,
    NO_SWEEP,
    answer_text,
    curve_name,
    point_text,
    progress_text,
    reason_text,
    verdict_text,
    wish_text,
)
from tui.widgets.line import TextLine
from tui.widgets.sweep.answer import AnswerText
from tui.widgets.sweep.heat import SweepMap, map_grid
from tui.widgets.sweep.lanes import TargetLanes
from tui.widgets.sweep.plot import SweepPlot
from tui.widgets.sweep.table import SweepTable

STATUS_PERIOD_S = 0.2
_LARGE = (140, 40)
"""Size from which all views are shown at once."""
_MOST_LINES = 14
"""Of the map and of the lanes beside the others."""
_VIEWS = ("table", "plot", "map", "targets", "answer")


class AnswersChanged(Message, bubble=False):
    """A curve was fitted."""


class SweepScreen(View):
    """Progress, verdict, and the views: all at once in a large window, one at a time in a small one."""

    ENTRY = SWEEP
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(SWEEP.actions)
    DEFAULT_CSS = """
    SweepScreen #sweep_body, SweepScreen #sweep_body Vertical { height: 1fr; }
    SweepScreen #sweep_body Spanned { height: 1fr; }
    SweepScreen #message.-long { height: 2; text-wrap: wrap; padding: 0 1; }
    SweepScreen #sweep_left, SweepScreen #sweep_right { width: 1fr; }
    SweepScreen.-large #table { height: 2fr; }
    SweepScreen.-large #plot { height: 2fr; }
    SweepScreen.-large #sweep_right { margin: 0 0 0 1; }
    SweepScreen.-tiny #verdict, SweepScreen.-tiny #legend, SweepScreen.-tiny #point { display: none; }
    """

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)
        self._answers = CurveAnswers(self._post_change)
        self._view = _VIEWS[0]
        self._sort, self._descending = SORT_KEYS[0], False
        self._shown: tuple[object, ...] = ()
        self._curve = 0
        self._offered: tuple[str, ...] = _VIEWS
        """Views that have something to show."""
        self._recorded: tuple[list[Event], SweepState | None] | None = None
        """Events of a recording up to the moment that is shown, and the sweep in them."""

    def compose_body(self) -> ComposeResult:
        """Progress, verdict, views, and the point under the cursor."""
        yield TextLine(" ", id="progress")
        yield TextLine(" ", id="message")
        yield TextLine(" ", id="verdict")
        with Horizontal(id="sweep_body"):
            with Vertical(id="sweep_left"):
                yield SweepTable(id="table")
                yield AnswerText(id="answer")
            with Vertical(id="sweep_right"):
                yield SweepPlot(id="plot")
                yield SweepMap(id="map")
                yield TargetLanes(id="targets")
        yield TextLine(" ", id="legend")
        yield TextLine(" ", id="point")

    def on_mount(self) -> None:
        """Begin the sweep, and follow it between frames."""
        self.set_interval(STATUS_PERIOD_S, self._tick)
        if self._session is not None and self._session.state.phase is SweepPhase.WAITING:
            self.call_after_refresh(self._begin, self._session)

    @property
    def _session(self) -> SweepSession | None:
        return self.app_state.sweep

    def _begin(self, session: SweepSession) -> None:
        """Begin once the name of every target that is written was typed."""
        controller = session.controller
        writes = [curve.knobs.read_pct for curve in session.plan.curves]
        missing = controller.unconfirmed(replace(session.plan.first, read_pct=min(writes)))
        if not missing:
            session.begin()
            return

        def typed(answer: str | None) -> None:
            if answer is None:
                session.refuse(f"{missing[0]}: name does not match: nothing written")
                return
            controller.confirm(answer)
            self._begin(session)

        self.app.push_screen(confirm_write(missing[0]), typed)

    # ------------------------------------------------------------------ drawing

    def show_frame(self, frame: Frame) -> None:  # noqa: ARG002 - a recording is read up to the frame of the app
        """Draw the sweep as it is now, or as it was then."""
        self._draw()

    def _tick(self) -> None:
        if self._session is not None and self.is_current and self.is_whole:
            self._draw()

    def _post_change(self) -> None:
        self.post_message(AnswersChanged())

    @on(AnswersChanged)
    def _answered(self) -> None:
        if self.is_whole:
            self._draw()

    def _state(self) -> SweepState | None:
        if self._session is not None:
            return self._session.state
        frame = self.app_state.frame
        if frame is None:
            return None
        past = [event for event in self.app_state.events.all() if event.monotonic_ns <= frame.monotonic_ns]
        if self._recorded is None or past != self._recorded[0]:
            self._recorded = past, recorded_state(past)
        return self._recorded[1]

    def _draw(self) -> None:
        state = self._state()
        if state is None:
            self._draw_nothing()
            return
        message = "" if self._session is None else self._session.message
        left = None if state.left_s is None else round(state.left_s)
        answers = self._answers.of(state.plan, state.points)
        shown = (replace(state, left_s=left), message, answers, self._view, self._order, self.size, self.app.theme)
        if shown == self._shown:
            return
        self._shown = shown
        rows = point_rows(state, answers)
        self.query_one("#sweep_body").display = True
        keys = tuple(axis.knob.key for axis in state.plan.axes)
        ordered = sorted_rows(rows, self._sort, descending=self._descending)
        self.query_one(SweepTable).show(ordered, keys, self._order)
        self._draw_lines(state, message)
        self._draw_curve(state, answers, rows)
        self._lay_out(state)

    @property
    def _order(self) -> tuple[str, bool]:
        return self._sort, self._descending

    def _draw_nothing(self) -> None:
        self.query_one("#progress", TextLine).put(f" {NO_SWEEP}")
        self.query_one("#sweep_body").display = False

    def _draw_lines(self, state: SweepState, message: str) -> None:
        style = {SweepPhase.PAUSED: "bold $warning", SweepPhase.ENDED: "bold"}.get(state.phase, "bold $accent")
        self.query_one("#progress", TextLine).put(Content.assemble((f" {safe_text(progress_text(state))}", style)))
        wish = wish_text(state)
        reason = reason_text(state)
        self.query_one("#message").set_class(bool(reason), "-long")
        words = "   ".join(part for part in (reason, message, "" if wish and wish in message else wish) if part)
        self.query_one("#message", TextLine).put(f" {safe_text(words)}")
        marks = "  ".join(f"{mark} {words}" for mark, words in MARKS)
        self.query_one("#legend", TextLine).put(Content.styled(f" {marks}   latencies in ms", "dim"))

    def _draw_curve(self, state: SweepState, answers: tuple[Answer | None, ...], rows: list[PointRow]) -> None:
        """Draw what follows the cursor: the verdict and the answer of its curve, and its point."""
        row = self._row
        self._curve = 0 if row is None else min(row.point.curve, len(answers) - 1)
        verdict = verdict_text(state, self._curve, answers[self._curve], self.size.width - 2)
        self.query_one("#verdict", TextLine).put(Content.assemble((f" {verdict}", "bold")))
        self.query_one("#point", TextLine).put(
            " " if row is None else f" {point_text(state, row, self.size.width - 2)}"
        )
        self.query_one(AnswerText).show(list(answer_text(state, answers, self._curve)))
        knob = "" if state.plan.load is None else state.plan.load.knob.key
        name = curve_name(state, self._curve)
        self.query_one(SweepPlot).show(rows, self._curve, answers[self._curve], name, knob)
        at = None if row is None else row.point
        self.query_one(SweepMap).show(map_grid(state.plan, rows, self._curve), rows, at)
        self.query_one(TargetLanes).show(row, "" if at is None else state.plan.point_name(at))

    def _lay_out(self, state: SweepState) -> None:
        """Show all views that have something to show, or the chosen one where there is no room for all."""
        large = self.size.width >= _LARGE[0] and self.size.height >= _LARGE[1]
        self.set_class(large, "-large")
        self._offered = tuple(view for view in _VIEWS if _has(state, view))
        for view in _VIEWS:
            widget = self.query_one(f"#{view}", Widget)
            widget.display = view in self._offered if large else view == self._view
            if not large:
                widget.styles.height = "1fr"
        if large:
            self._fit_to_plan(state)
        for side in ("#sweep_left", "#sweep_right"):
            column = self.query_one(side)
            column.display = any(child.display for child in column.children)

    def _fit_to_plan(self, state: SweepState) -> None:
        """Give map and lanes the lines they need, which depend on the axes only; the plot gets the rest."""
        targets = max((len(trial.targets) for trials in state.points.trials for trial in trials), default=0)
        for view, lines in (("map", len(state.plan.curves)), ("targets", targets + 1)):
            self.query_one(f"#{view}", Widget).styles.height = min(lines + 3, _MOST_LINES)

    @property
    def _row(self) -> PointRow | None:
        return self.query_one(SweepTable).cursor_row

    @on(SweepTable.RowMoved)
    def _moved(self) -> None:
        self._shown = ()
        self._draw()

    @on(SweepMap.PointMoved)
    def _moved_on_map(self, message: SweepMap.PointMoved) -> None:
        self.query_one(SweepTable).go_to(message.point)

    def latency_subject(self) -> LatencySubject:
        """Return all targets of the load."""
        return WHOLE_LOAD

    # ------------------------------------------------------------------ actions

    def action_sweep_use(self) -> None:
        """Set the live knobs to the point under the cursor."""
        if self._session is not None and self._row is not None:
            self._session.use(self._row.point)
            self._draw()

    def action_sweep_pause(self) -> None:
        """Pause or go on."""
        if self._session is not None:
            self._session.toggle_pause()
            self._draw()

    def action_sweep_skip(self) -> None:
        """Leave out the point being measured."""
        if self._session is not None:
            self._session.skip()
            self._draw()

    def action_sweep_stop(self) -> None:
        """End the sweep and keep what was measured."""
        if self._session is not None:
            self._session.stop()
            self._draw()

    def action_sweep_view(self) -> None:
        """Show the next view."""
        position = self._offered.index(self._view) if self._view in self._offered else -1
        self._view = self._offered[(position + 1) % len(self._offered)]
        self._draw()
        view = self.query_one(f"#{self._view}", Widget)
        if view.can_focus:
            view.focus()

    def action_sweep_figure(self) -> None:
        """Show the next figure on the map."""
        self.query_one(SweepMap).next_figure()

    def action_sweep_curve(self) -> None:
        """Move to the next curve."""
        state = self._state()
        if state is not None:
            curve = (self._curve + 1) % len(state.plan.curves)
            self.query_one(SweepTable).go_to(Point(curve, state.plan.curves[curve].search.loads[0]))

    def action_sweep_sort(self) -> None:
        """Sort by the next column."""
        self._sort = SORT_KEYS[(SORT_KEYS.index(self._sort) + 1) % len(SORT_KEYS)]
        self._draw()

    def action_sweep_reverse(self) -> None:
        """Reverse the order."""
        self._descending = not self._descending
        self._draw()


def _has(state: SweepState, view: str) -> bool:
    """Whether a view has something to show: a map needs two axes, lanes several targets."""
    match view:
        case "map":
            return state.plan.load is not None and len(state.plan.axes) > 1
        case "targets":
            return any(trial.targets for trials in state.points.trials for trial in trials)
        case _:
            return True
