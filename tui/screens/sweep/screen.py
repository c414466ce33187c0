"""The sweep: its points while they are measured, and what they say."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.message import Message

from collectors.latency.subjects import WHOLE_LOAD, LatencySubject
from collectors.model import Frame
from engine.replacing import replace
from engine.sweep.knee import Answer
from engine.text import safe_text
from tui.app_state import AppState
from tui.keys import bindings_of
from tui.screen_registry import SWEEP
from tui.screens.sweep.curves import CurvesBody
from tui.screens.sweep.isolation import IsolationBody
from tui.screens.sweep.rates import RateBody
from tui.screens.sweep.shown import ShownMeasurement
from tui.screens.sweep.start import SweepStarts
from tui.sweep.answers import CurveAnswers
from tui.sweep.isolation_state import IsolationState
from tui.sweep.preset_group import study_lines
from tui.sweep.rate_session import RateSession
from tui.sweep.rate_state import RateState
from tui.sweep.recorded import State
from tui.sweep.session import SweepSession
from tui.sweep.state import SweepPhase, SweepState
from tui.sweep.state_words import StateWords, state_words
from tui.sweep.words import NO_SWEEP
from tui.widgets.grid.table import Grid
from tui.widgets.line import TextLine
from tui.widgets.sweep.heat import SweepMap

STATUS_PERIOD_S = 0.2
_LARGE = (140, 40)
"""Size from which all views are shown at once."""
_STARTS = frozenset({"sweep.rate", "sweep.preset"})
"""Actions that need no measurement."""
_OF_RUNNING = frozenset({"sweep.pause", "sweep.skip", "sweep.stop"})


class AnswersChanged(Message, bubble=False):
    """A curve was fitted."""


class SweepScreen(SweepStarts):
    """Progress, verdict, and the views: all at once in a large window, one at a time in a small one."""

    ENTRY = SWEEP
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(SWEEP.actions)
    DEFAULT_CSS = """
    SweepScreen #message.-long { height: 2; text-wrap: wrap; padding: 0 1; }
    SweepScreen #point.-alone { height: 1fr; }
    SweepScreen.-tiny #verdict, SweepScreen.-tiny #legend, SweepScreen.-tiny #point { display: none; }
    """

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)
        self.shown = ShownMeasurement(app_state)
        self._answers = CurveAnswers(self._post_change)
        self._drawn: tuple[object, ...] = ()
        """What the last drawing depended on."""
        self._idle: frozenset[str] = frozenset()
        """Actions without keys on the key line that was drawn last."""
        self._kind: type[object] = SweepState
        """Type of the state that was drawn last."""
        self._report = ""
        """Why something was not begun, or what it cannot do."""

    def compose_body(self) -> ComposeResult:
        """Progress, verdict, views, and the point under the cursor."""
        yield TextLine(" ", id="progress")
        yield TextLine(" ", id="message")
        yield TextLine(" ", id="verdict")
        yield CurvesBody()
        yield RateBody()
        yield IsolationBody()
        yield TextLine(" ", id="legend")
        yield TextLine(" ", id="point")

    def on_mount(self) -> None:
        """Begin what the command asked for, and follow it between frames."""
        self.set_interval(STATUS_PERIOD_S, self._tick)
        current = self.app_state.sweeps.current
        if current is not None and current.state.phase is SweepPhase.WAITING:
            self.call_after_refresh(self.begin_first, current)

    def report(self, text: str) -> None:
        """Show a refusal, or what a preset cannot do here, until something else is begun or asked."""
        self._report = text
        self._redraw()

    def began(self) -> None:
        """Show what was begun."""
        self.shown.follow_last()
        self._redraw()

    def _redraw(self) -> None:
        self._drawn = ()
        self._draw()

    # ------------------------------------------------------------------ drawing

    @property
    def follows_time(self) -> bool:
        """Only a recorded sweep does."""
        return not self.app_state.sweeps.sessions

    @property
    def idle_actions(self) -> frozenset[str]:
        """All but the starts where nothing was measured; what ends or delays a measurement once it has ended."""
        return self._idle_at(self.shown.state())

    def _idle_at(self, state: State | None) -> frozenset[str]:
        sweeps = self.app_state.sweeps
        if state is None:
            return frozenset(action.id for action in self.ENTRY.actions) - _STARTS
        is_over = sweeps.current is None or sweeps.current.state.phase is SweepPhase.ENDED
        return _OF_RUNNING if is_over and not sweeps.is_busy else frozenset()

    def show_keys(self) -> None:
        """Show the keys that do something now."""
        self._idle = self.idle_actions
        super().show_keys()

    def show_frame(self, frame: Frame) -> None:  # noqa: ARG002 - a recording is read up to the frame of the app
        """Draw the sweep as it is now, or as it was then."""
        self._draw()

    def _tick(self) -> None:
        if self.shown.session is not None and self.is_current and self.is_whole:
            self._draw()

    def _post_change(self) -> None:
        self.post_message(AnswersChanged())

    @on(AnswersChanged)
    def _answered(self) -> None:
        if self.is_whole:
            self._draw()

    def _draw(self) -> None:
        state = self.shown.state()
        self._show_body(state)
        if self._idle_at(state) != self._idle:
            self.show_keys()
        if state is None:
            self._draw_nothing()
            return
        answers = self._answers.of(state.plan, state.points) if isinstance(state, SweepState) else ()
        left, message = None if state.left_s is None else round(state.left_s), self._message
        chosen = (self._body(state).chosen, self.shown.number_text, self.size, self.app.theme)
        drawn = (replace(state, left_s=left), message, answers, chosen)
        if drawn != self._drawn:
            self._drawn = drawn
            verdict, point = self._draw_body(state, answers)
            self._put_lines(state, message, state_words(state))
            self.query_one("#verdict", TextLine).put(Content.assemble((f" {safe_text(verdict)}", "bold")))
            self.query_one("#point", TextLine).put(f" {safe_text(point)}")

    def _show_body(self, state: State | None) -> None:
        """Show the body of the kind of state; its table has the focus once the kind changes."""
        self.query_one(CurvesBody).display = isinstance(state, SweepState)
        self.query_one(RateBody).display = isinstance(state, RateState)
        self.query_one(IsolationBody).display = isinstance(state, IsolationState)
        self.query_one("#point").set_class(state is None, "-alone")
        if type(state) is not self._kind:
            self._kind = type(state)
            self._body(state).grid.focus()

    def _draw_body(self, state: State, answers: tuple[Answer | None, ...]) -> tuple[str, str]:
        """Draw tables and plots; returns the verdict, and the point under the cursor."""
        width = self.size.width - 2
        is_large = self.size.width >= _LARGE[0] and self.size.height >= _LARGE[1]
        if isinstance(state, RateState):
            rates = self.query_one(RateBody)
            rates.show(state, self.shown.closed_loop(), is_large=is_large)
            return rates.texts(state, width)
        if isinstance(state, IsolationState):
            isolation = self.query_one(IsolationBody)
            isolation.show(state, is_large=is_large)
            return isolation.texts(state, width)
        curves = self.query_one(CurvesBody)
        curves.show(state, answers, self._study(state), is_large=is_large)
        return curves.texts(state, answers, width)

    @property
    def _message(self) -> str:
        """What the last request led to."""
        session = self.shown.session
        fleet = self.app_state.fleet
        of_hosts = "" if fleet is None else fleet.trouble
        words = (self._report, of_hosts, self.app_state.sweeps.note, "" if session is None else session.message)
        return "   ".join(part for part in words if part)

    def _draw_nothing(self) -> None:
        self.query_one("#progress", TextLine).put(f" {NO_SWEEP}")
        self.query_one("#message", TextLine).put(f" {safe_text(self._message)}")
        live = self.app_state.controller is not None
        self.query_one("#verdict", TextLine).put(f" {self._starts()}" if live else " ")

    def _starts(self) -> str:
        rate, preset = self.key_text("sweep.rate"), self.key_text("sweep.preset")
        return f"{rate} searches the highest rate within limits, {preset} measures a published study"

    def _put_lines(self, state: State, message: str, words: StateWords) -> None:
        style = {SweepPhase.PAUSED: "bold $warning", SweepPhase.ENDED: "bold"}.get(state.phase, "bold $accent")
        part = f"[{state.part}] " if state.part else ""
        progress = f" {safe_text(self.shown.number_text + part + words.progress)}"
        self.query_one("#progress", TextLine).put(Content.assemble((progress, style)))
        wish = "" if words.wish and words.wish in message else words.wish
        line = "   ".join(each for each in (words.reason, message, wish) if each)
        self.query_one("#message").set_class(bool(words.reason) or len(line) > self.size.width - 2, "-long")
        self.query_one("#message", TextLine).put(f" {safe_text(line)}")
        self.query_one("#legend", TextLine).put(Content.styled(f" {words.legend}", "dim"))

    def _study(self, state: SweepState) -> list[str]:
        """Write the tables of the preset that the sweep is a part of; live once one of its sweeps is over."""
        session, controller = self.shown.session, self.app_state.controller
        for group in self.app_state.sweeps.groups if controller is not None else ():
            if session in group.sessions and any(each.state.phase is SweepPhase.ENDED for each in group.sessions):
                assert controller is not None
                return study_lines(group, controller.status.targets)
        return list(state.study)

    @on(Grid.RowHighlighted)
    def _moved(self) -> None:
        self._redraw()

    @on(SweepMap.PointMoved)
    def _moved_on_map(self, message: SweepMap.PointMoved) -> None:
        self.query_one(CurvesBody).go_to(message.point)

    def latency_subject(self) -> LatencySubject:
        """Return all targets of the load."""
        return WHOLE_LOAD

    # ------------------------------------------------------------------ actions

    def _body(self, state: State | None) -> CurvesBody | RateBody | IsolationBody:
        """Return what shows a state; without any, what shows sweeps."""
        match state:
            case RateState():
                return self.query_one(RateBody)
            case IsolationState():
                return self.query_one(IsolationBody)
            case _:
                return self.query_one(CurvesBody)

    def action_sweep_use(self) -> None:
        """Set the live knobs to the point or the rate under the cursor."""
        session = self.shown.session
        self._report = ""
        if self.app_state.sweeps.is_busy and session is not self.app_state.sweeps.current:
            self._report = "another measurement goes on: its knobs are its own until it ends"
        elif isinstance(session, SweepSession):
            row = self.query_one(CurvesBody).row
            if row is not None:
                session.use(row.point)
        elif isinstance(session, RateSession):
            rate = self.query_one(RateBody).row
            if rate is not None:
                session.use(rate.point)
        elif session is not None:
            self._report = "a point of this curve has no knobs to set: caps are set with lunscope tune"
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
        self.shown.choose_next()
        self._redraw()

    def action_sweep_view(self) -> None:
        """Show the next view."""
        self._body(self.shown.state()).next_view()
        self._redraw()

    def action_sweep_figure(self) -> None:
        """Show the next figure on the map or the plot, or put the next limit in front."""
        state = self.shown.state()
        if isinstance(state, RateState):
            self.query_one(RateBody).next_limit(state)
        elif isinstance(state, IsolationState):
            self.query_one(IsolationBody).next_figure()
        else:
            self.query_one(CurvesBody).next_figure()
        self._redraw()

    def action_sweep_curve(self) -> None:
        """Move to the next curve, or the next cap."""
        state = self.shown.state()
        if isinstance(state, RateState):
            self.query_one(RateBody).next_curve(state)
        elif isinstance(state, IsolationState):
            self.query_one(IsolationBody).next_curve(state)
        elif state is not None:
            self.query_one(CurvesBody).next_curve(state)
        self._redraw()

    def action_sweep_sort(self) -> None:
        """Sort by the next column."""
        self._body(self.shown.state()).grid.action_sort(1)

    def action_sweep_reverse(self) -> None:
        """Reverse the order."""
        self._body(self.shown.state()).grid.action_sort_reverse()
