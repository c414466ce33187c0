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
from engine.sweep.points import Point, SweepPoints
from engine.text import safe_text
from tui.app_state import AppState
from tui.keys import bindings_of
from tui.screen_registry import SWEEP
from tui.screens.dialogs import confirm_write
from tui.screens.sweep_rates import RateBody
from tui.screens.sweep_start import SweepStarts
from tui.sweep.answers import CurveAnswers
from tui.sweep.preset_group import study_lines
from tui.sweep.rate_state import RateState
from tui.sweep.rate_words import rate_progress_text, rate_reason_text
from tui.sweep.recorded import State, recorded_states
from tui.sweep.rows import SORT_KEYS, PointRow, point_rows, sorted_rows
from tui.sweep.series import Session
from tui.sweep.session import SweepSession
from tui.sweep.state import SweepPhase, SweepState
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
from tui.widgets.row_table import RowTable
from tui.widgets.sweep.answer import AnswerText
from tui.widgets.sweep.heat import SweepMap, map_grid
from tui.widgets.sweep.lanes import TargetLanes
from tui.widgets.sweep.plot import SweepPlot
from tui.widgets.sweep.rate_table import RateTable
from tui.widgets.sweep.table import SweepTable

STATUS_PERIOD_S = 0.2
_LARGE = (140, 40)
"""Size from which all views are shown at once."""
_MOST_LINES = 14
"""Of the map and of the lanes beside the others."""
_VIEWS = ("table", "plot", "map", "targets", "answer")


class AnswersChanged(Message, bubble=False):
    """A curve was fitted."""


class SweepScreen(SweepStarts):
    """Progress, verdict, and the views: all at once in a large window, one at a time in a small one."""

    ENTRY = SWEEP
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(SWEEP.actions)
    DEFAULT_CSS = """
    SweepScreen #sweep_body, SweepScreen #sweep_body Vertical { height: 1fr; }
    SweepScreen #sweep_body Spanned { height: 1fr; }
    SweepScreen #message.-long { height: 2; text-wrap: wrap; padding: 0 1; }
    SweepScreen #sweep_left, SweepScreen #sweep_right { width: 1fr; }
    SweepScreen #point.-alone { height: 1fr; }
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
        self._recorded: tuple[list[Event], tuple[State, ...]] | None = None
        """Events of a recording up to the moment that is shown, and the sweeps in them."""
        self._part: int | None = None
        """Number of the measurement that is shown; None: the last."""
        self._kind: type[object] = SweepState
        """Of the state that was drawn last."""
        self._report = ""
        """Why something was not begun, or what it cannot do."""

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
        yield RateBody()
        yield TextLine(" ", id="legend")
        yield TextLine(" ", id="point")

    def on_mount(self) -> None:
        """Begin what the command asked for, and follow it between frames."""
        self.set_interval(STATUS_PERIOD_S, self._tick)
        current = self.app_state.sweeps.current
        if current is not None and current.state.phase is SweepPhase.WAITING:
            self.call_after_refresh(self._begin_first, current)

    @property
    def _session(self) -> Session | None:
        """The measurement that is shown."""
        sessions = self.app_state.sweeps.sessions
        if not sessions:
            return None
        return sessions[-1 if self._part is None else min(self._part, len(sessions) - 1)]

    def _begin_first(self, session: Session) -> None:
        """Begin once the name of every target that is written was typed."""
        controller = session.controller
        missing = controller.unconfirmed(replace(session.first, read_pct=session.least_read_pct))
        if not missing:
            self.app_state.sweeps.begin()
            return

        def typed(answer: str | None) -> None:
            if answer is None:
                session.refuse(f"{missing[0]}: name does not match: nothing written")
                return
            controller.confirm(answer)
            self._begin_first(session)

        self.app.push_screen(confirm_write(missing[0]), typed)

    def report(self, text: str) -> None:
        """Show a refusal, or what a preset cannot do here, until something else is begun or asked."""
        self._report = text
        self._redraw()

    def began(self) -> None:
        """Show what was begun."""
        self._part = None
        self._redraw()

    def _redraw(self) -> None:
        self._shown = ()
        self._draw()

    # ------------------------------------------------------------------ drawing

    @property
    def follows_time(self) -> bool:
        """Only a recorded sweep does."""
        return not self.app_state.sweeps.sessions

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

    def _states(self) -> tuple[State, ...]:
        """All sweeps and searches, in their order."""
        sessions = self.app_state.sweeps.sessions
        if sessions:
            return tuple(session.state for session in sessions)
        frame = self.app_state.frame
        if frame is None:
            return ()
        past = [event for event in self.app_state.events.all() if event.monotonic_ns <= frame.monotonic_ns]
        if self._recorded is None or past != self._recorded[0]:
            self._recorded = past, recorded_states(past)
        return self._recorded[1]

    def _state(self) -> State | None:
        """Return the one that is shown."""
        states = self._states()
        if not states:
            return None
        return states[-1 if self._part is None else min(self._part, len(states) - 1)]

    def _closed_loop(self) -> SweepPoints | None:
        """Points of the closed loops that were measured before the search that is shown."""
        states = self._states()
        last = len(states) if self._part is None else min(self._part, len(states) - 1)
        return next((each.points for each in reversed(states[:last]) if isinstance(each, SweepState)), None)

    def _draw(self) -> None:
        state = self._state()
        self.query_one("#sweep_body").display = isinstance(state, SweepState)
        self.query_one(RateBody).display = isinstance(state, RateState)
        self.query_one("#point").set_class(state is None, "-alone")
        if type(state) is not self._kind:
            self._kind = type(state)
            self.query_one(RateTable if isinstance(state, RateState) else SweepTable).focus()
        if state is None:
            self._draw_nothing()
        elif isinstance(state, RateState):
            self._draw_rates(state)
        else:
            self._draw_sweep(state)

    @property
    def _said(self) -> str:
        """What the last request led to."""
        session = self._session
        words = (self._report, self.app_state.sweeps.note, "" if session is None else session.message)
        return "   ".join(part for part in words if part)

    def _draw_rates(self, state: RateState) -> None:
        body, message = self.query_one(RateBody), self._said
        left = None if state.left_s is None else round(state.left_s)
        shown = (replace(state, left_s=left), message, body.chosen, self._part, self.size, self.app.theme)
        if shown == self._shown:
            return
        self._shown = shown
        large = self.size.width >= _LARGE[0] and self.size.height >= _LARGE[1]
        body.show(state, self._closed_loop(), is_large=large)
        wish = "" if state.wanted is None else f"on end: {state.wanted.name(state.plan)}"
        self._put_lines(state, rate_progress_text(state), rate_reason_text(state), message, wish)
        verdict, point = body.texts(state, self.size.width - 2)
        self.query_one("#verdict", TextLine).put(Content.assemble((f" {safe_text(verdict)}", "bold")))
        self.query_one("#point", TextLine).put(f" {point}")
        legend = " lower UPPER ? class (RFC 9971)  [ ] bound of the answer  k/n trials kept it"
        if not state.plan.limits:
            legend = " open loop: latency counts from when each I/O was due, whatever completes"
        self.query_one("#legend", TextLine).put(Content.styled(legend, "dim"))

    def _draw_sweep(self, state: SweepState) -> None:
        message = self._said
        left = None if state.left_s is None else round(state.left_s)
        answers = self._answers.of(state.plan, state.points)
        chosen = (self._view, self._order, self._part, self.size, self.app.theme)
        shown = (replace(state, left_s=left), message, answers, chosen)
        if shown == self._shown:
            return
        self._shown = shown
        rows = point_rows(state, answers)
        keys = tuple(axis.knob.key for axis in state.plan.axes)
        ordered = sorted_rows(rows, self._sort, descending=self._descending)
        self.query_one(SweepTable).show(ordered, keys, self._order)
        self._put_lines(state, progress_text(state), reason_text(state), message, wish_text(state))
        marks = "  ".join(f"{mark} {words}" for mark, words in MARKS)
        self.query_one("#legend", TextLine).put(Content.styled(f" {marks}   latencies in ms", "dim"))
        self._draw_curve(state, answers, rows)
        self._lay_out(state)

    @property
    def _order(self) -> tuple[str, bool]:
        return self._sort, self._descending

    def _draw_nothing(self) -> None:
        self.query_one("#progress", TextLine).put(f" {NO_SWEEP}")
        self.query_one("#message", TextLine).put(f" {safe_text(self._said)}")
        live = self.app_state.controller is not None
        self.query_one("#verdict", TextLine).put(f" {self._starts()}" if live else " ")

    def _starts(self) -> str:
        rate, preset = self.key_text("sweep.rate"), self.key_text("sweep.preset")
        return f"{rate} searches the highest rate within limits, {preset} measures a published study"

    def _put_lines(self, state: State, progress: str, reason: str, message: str, wish: str) -> None:
        style = {SweepPhase.PAUSED: "bold $warning", SweepPhase.ENDED: "bold"}.get(state.phase, "bold $accent")
        part, count = f"[{state.part}] " if state.part else "", len(self._states())
        if self._part is not None and self._part < count - 1:
            part = f"({self._part + 1} of {count}) {part}"
        self.query_one("#progress", TextLine).put(Content.assemble((f" {safe_text(part + progress)}", style)))
        words = "   ".join(each for each in (reason, message, "" if wish and wish in message else wish) if each)
        self.query_one("#message").set_class(bool(reason) or len(words) > self.size.width - 2, "-long")
        self.query_one("#message", TextLine).put(f" {safe_text(words)}")

    def _draw_curve(self, state: SweepState, answers: tuple[Answer | None, ...], rows: list[PointRow]) -> None:
        """Draw what follows the cursor: the verdict and the answer of its curve, and its point."""
        row = self._row
        self._curve = 0 if row is None else min(row.point.curve, len(answers) - 1)
        verdict = verdict_text(state, self._curve, answers[self._curve], self.size.width - 2)
        self.query_one("#verdict", TextLine).put(Content.assemble((f" {verdict}", "bold")))
        self.query_one("#point", TextLine).put(
            " " if row is None else f" {point_text(state, row, self.size.width - 2)}"
        )
        self.query_one("#answer", AnswerText).show(list(answer_text(state, answers, self._curve)), self._study(state))
        knob = "" if state.plan.load is None else state.plan.load.knob.key
        name = curve_name(state, self._curve)
        self.query_one(SweepPlot).show(rows, self._curve, answers[self._curve], name, knob)
        at = None if row is None else row.point
        self.query_one(SweepMap).show(map_grid(state.plan, rows, self._curve), rows, at)
        self.query_one(TargetLanes).show(row, "" if at is None else state.plan.point_name(at))

    def _study(self, state: SweepState) -> list[str]:
        """Write the tables of the preset that the sweep is a part of; live once one of its sweeps is over."""
        session, controller = self._session, self.app_state.controller
        for group in self.app_state.sweeps.groups if controller is not None else ():
            if session in group.sessions and any(each.state.phase is SweepPhase.ENDED for each in group.sessions):
                assert controller is not None
                return study_lines(group, controller.status.targets)
        return list(state.study)

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

    @on(RowTable.RowMoved)
    def _moved(self) -> None:
        self._redraw()

    @on(SweepMap.PointMoved)
    def _moved_on_map(self, message: SweepMap.PointMoved) -> None:
        self.query_one(SweepTable).go_to(message.point)

    def latency_subject(self) -> LatencySubject:
        """Return all targets of the load."""
        return WHOLE_LOAD

    # ------------------------------------------------------------------ actions

    def action_sweep_use(self) -> None:
        """Set the live knobs to the point or the rate under the cursor."""
        session = self._session
        self._report = ""
        if self.app_state.sweeps.is_busy and session is not self.app_state.sweeps.current:
            self._report = "another measurement goes on: its knobs are its own until it ends"
        elif isinstance(session, SweepSession):
            if self._row is not None:
                session.use(self._row.point)
        elif session is not None:
            rate = self.query_one(RateBody).row
            if rate is not None:
                session.use(rate.point)
        self._draw()

    def action_sweep_pause(self) -> None:
        """Pause or go on."""
        if self.app_state.sweeps.current is not None:
            self.app_state.sweeps.current.toggle_pause()
            self._draw()

    def action_sweep_skip(self) -> None:
        """Leave out the point being measured."""
        if self.app_state.sweeps.current is not None:
            self.app_state.sweeps.current.skip()
            self._draw()

    def action_sweep_stop(self) -> None:
        """End what is measured and keep what there is."""
        self.app_state.sweeps.stop()
        self._draw()

    def action_sweep_part(self) -> None:
        """Show the next sweep or search of those that were measured."""
        count = len(self._states())
        if count:
            at = (count if self._part is None else min(self._part, count - 1) + 1) % count
            self._part = None if at == count - 1 else at
        self._redraw()

    def action_sweep_view(self) -> None:
        """Show the next view."""
        if isinstance(self._state(), RateState):
            self.query_one(RateBody).next_view()
            self._redraw()
            return
        position = self._offered.index(self._view) if self._view in self._offered else -1
        self._view = self._offered[(position + 1) % len(self._offered)]
        self._draw()
        view = self.query_one(f"#{self._view}", Widget)
        if view.can_focus:
            view.focus()

    def action_sweep_figure(self) -> None:
        """Show the next figure on the map, or put the next limit in front."""
        state = self._state()
        if isinstance(state, RateState):
            self.query_one(RateBody).next_limit(state)
            self._redraw()
        else:
            self.query_one(SweepMap).next_figure()

    def action_sweep_curve(self) -> None:
        """Move to the next curve."""
        state = self._state()
        if isinstance(state, RateState):
            self.query_one(RateBody).next_curve(state)
            self._redraw()
        elif state is not None:
            curve = (self._curve + 1) % len(state.plan.curves)
            self.query_one(SweepTable).go_to(Point(curve, state.plan.curves[curve].search.loads[0]))

    def action_sweep_sort(self) -> None:
        """Sort by the next column."""
        if isinstance(self._state(), RateState):
            self.query_one(RateBody).next_sort()
        else:
            self._sort = SORT_KEYS[(SORT_KEYS.index(self._sort) + 1) % len(SORT_KEYS)]
        self._redraw()

    def action_sweep_reverse(self) -> None:
        """Reverse the order."""
        if isinstance(self._state(), RateState):
            self.query_one(RateBody).reverse()
        else:
            self._descending = not self._descending
        self._redraw()


def _has(state: SweepState, view: str) -> bool:
    """Whether a view has something to show: a map needs two axes, lanes several targets."""
    match view:
        case "map":
            return state.plan.load is not None and len(state.plan.axes) > 1
        case "targets":
            return any(trial.targets for trials in state.points.trials for trial in trials)
        case _:
            return True
