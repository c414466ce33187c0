"""The sweep: its points while they are measured, and what they say."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from collectors.latency.subjects import WHOLE_LOAD, LatencySubject
from collectors.model import Frame
from engine.replacing import replace
from engine.text import safe_text
from tui.app_state import AppState
from tui.keys import bindings_of
from tui.screen_registry import SWEEP
from tui.screens.sweep.body import AnswersChanged, SweepBody
from tui.screens.sweep.curves import CurvesBody
from tui.screens.sweep.isolation import IsolationBody
from tui.screens.sweep.rates import RateBody
from tui.screens.sweep.shown import ShownMeasurement, State
from tui.screens.sweep.start import SweepStarts
from tui.screens.sweep.study_words import progress_text, reason_text
from tui.screens.sweep.words import NO_SWEEP
from tui.sweep.state import SweepPhase
from tui.widgets.grid.table import Grid
from tui.widgets.line import TextLine

STATUS_PERIOD_S = 0.2
_LARGE = (140, 40)
"""Size from which all views are shown at once."""
_STARTS = frozenset({"sweep.rate", "sweep.preset"})
"""Actions that need no measurement."""
_OF_RUNNING = frozenset({"sweep.pause", "sweep.skip", "sweep.stop"})


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
        self._drawn: tuple[object, ...] = ()
        """What the last drawing depended on."""
        self._idle: frozenset[str] = frozenset()
        """Actions without keys on the key line that was drawn last."""
        self._bodies: tuple[SweepBody[Any], ...] = (CurvesBody(), RateBody(), IsolationBody())
        self._kind: SweepBody[Any] | None = self._bodies[0]
        """What was shown last; None without a measurement."""
        self._report = ""
        """Why something was not begun, or what it cannot do."""

    def compose_body(self) -> ComposeResult:
        """Progress, verdict, views, and the point under the cursor."""
        yield TextLine(" ", id="progress")
        yield TextLine(" ", id="message")
        yield TextLine(" ", id="verdict")
        yield from self._bodies
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
        body = self._body(state)
        left, message = None if state.left_s is None else round(state.left_s), self._message
        chosen = (body.chosen(state), self.shown.number_text, self.size, self.app.theme)
        drawn = (replace(state, left_s=left), message, chosen)
        if drawn != self._drawn:
            self._drawn = drawn
            is_large = self.size.width >= _LARGE[0] and self.size.height >= _LARGE[1]
            body.show(state, self.shown, is_large=is_large)
            verdict, point = body.texts(state, self.size.width - 2)
            self._put_lines(state, message, body)
            self.query_one("#verdict", TextLine).put(Content.assemble((f" {safe_text(verdict)}", "bold")))
            self.query_one("#point", TextLine).put(f" {safe_text(point)}")

    def _show_body(self, state: State | None) -> None:
        """Show the body of the kind of state; its table has the focus once the kind changes."""
        shown = self._body(state)
        for body in self._bodies:
            body.display = state is not None and body is shown
        self.query_one("#point").set_class(state is None, "-alone")
        kind = None if state is None else shown
        if kind is not self._kind:
            self._kind = kind
            shown.grid.focus()

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

    def _put_lines(self, state: State, message: str, body: SweepBody[Any]) -> None:
        words, now = body.words(state), state.points.measuring
        style = {SweepPhase.PAUSED: "bold $warning", SweepPhase.ENDED: "bold"}.get(state.phase, "bold $accent")
        part = f"[{state.part}] " if state.part else ""
        progress = progress_text(state, words, "" if now is None else body.name_of(state, now))
        text = f" {safe_text(self.shown.number_text + part + progress)}"
        self.query_one("#progress", TextLine).put(Content.assemble((text, style)))
        reason, wish = reason_text(state), ""
        if state.wanted is not None:
            wish = f"on end: {body.name_of(state, state.wanted)}"
        line = "   ".join(each for each in (reason, message, "" if wish in message else wish) if each)
        self.query_one("#message").set_class(bool(reason) or len(line) > self.size.width - 2, "-long")
        self.query_one("#message", TextLine).put(f" {safe_text(line)}")
        self.query_one("#legend", TextLine).put(Content.styled(f" {words.legend}", "dim"))

    @on(Grid.RowHighlighted)
    def _moved(self) -> None:
        self._redraw()

    def latency_subject(self) -> LatencySubject:
        """Return all targets of the load."""
        return WHOLE_LOAD

    # ------------------------------------------------------------------ actions

    def _body(self, state: State | None) -> SweepBody[Any]:
        """Return what shows a state; without any, what shows sweeps."""
        of_kind = (each for each in self._bodies if state is not None and isinstance(state.plan, each.PLAN))
        return next(of_kind, self._bodies[0])

    def action_sweep_use(self) -> None:
        """Set the live knobs to the point or the rate under the cursor."""
        session = self.shown.session
        self._report = ""
        if self.app_state.sweeps.is_busy and session is not self.app_state.sweeps.current:
            self._report = "another measurement goes on: its knobs are its own until it ends"
        elif session is not None:
            row = self._body(self.shown.state()).grid.row
            if row is not None:
                self._report = session.use(row.point)
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
        if state is not None:
            self._body(state).next_figure(state)
        self._redraw()

    def action_sweep_curve(self) -> None:
        """Move to the next curve, or the next cap."""
        state = self.shown.state()
        if state is not None:
            self._body(state).next_curve(state)
        self._redraw()

    def action_sweep_sort(self) -> None:
        """Sort by the next column."""
        self._body(self.shown.state()).grid.action_sort(1)

    def action_sweep_reverse(self) -> None:
        """Reverse the order."""
        self._body(self.shown.state()).grid.action_sort_reverse()
