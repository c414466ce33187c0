"""The load: job, knobs, and the effect of each turn of a knob."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid as Cells
from textual.containers import Vertical
from textual.timer import Timer
from textual.widgets import ContentSwitcher

from collectors.latency.subjects import WHOLE_LOAD, LatencySubject
from collectors.model import Frame
from collectors.series import Series
from collectors.tables.load.targets import TOTAL_ROWS
from engine.errors import LunscopeError
from engine.guard.answers import GuardAnswer
from engine.job.describe import knob_changes, uses_policy
from engine.job.spec import JobSpec, Mode, Permissions, TargetSpec
from engine.job.target_text import format_target
from engine.newest_work import PATIENCE_S, NewestWork
from engine.replacing import replace
from engine.text import safe_text
from tui.action import with_actions
from tui.app_state import AppState
from tui.history.trends import rows_of
from tui.keys import bindings_of
from tui.load.effect import Effect, changes_text
from tui.load.knob_memory import Flip
from tui.load.load_controller import BUSY_STATES, LIVE_STATES, LoadController
from tui.load.state_text import (
    OF_HOSTS,
    REPLAYED,
    REWOUND,
    RecordedState,
    happened_text,
    message_line,
    recorded_state,
    state_line,
)
from tui.screen_registry import LOAD
from tui.screens.load.actions import LoadKeys
from tui.screens.load.here import LoadHere
from tui.screens.load.job_form import JobForm
from tui.screens.shared.base import View
from tui.screens.shared.chart_curves import IN_FLIGHT, IOPS, LOAD_LATENCY, THROUGHPUT, Panel, draw, draw_nothing
from tui.text.columns import default_columns, with_trend
from tui.text.safe import target_labels
from tui.widgets.chart.widget import Chart
from tui.widgets.grid.height import fit_to_rows
from tui.widgets.grid.rows import NAME
from tui.widgets.grid.table import Grid
from tui.widgets.guard_panel import FEW_LINES, MOST_LINES, GuardPanel
from tui.widgets.knobs import EffectPanel, KnobPanel, SlotLine, compose_knobs
from tui.widgets.line import TextLine
from tui.widgets.load_form import LoadForm

STATUS_PERIOD_S = 0.2
PANELS = (LOAD_LATENCY, IOPS, THROUGHPUT, IN_FLIGHT)

FEWEST_GRID_LINES = 5
"""Lines of the grid of targets: titles, units, and three of its rows."""


class LoadScreen(View):
    """Form and state of the load; blocking work runs in threads that only post messages."""

    ENTRY = LOAD
    AUTO_FOCUS = "#targets_grid"
    """Textual would else focus the form, which is hidden, and style all of it twice."""
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_of(LOAD.actions),
        Binding("escape", "leave_form", "Back to the knobs", show=False),
    ]
    DEFAULT_CSS = """
    LoadScreen #knob_row { height: 6; }
    LoadScreen.-narrow #knob_row { height: 8; }
    LoadScreen.-narrow #knob_row.-policy { height: 9; }
    LoadScreen #load_message { height: 2; text-wrap: wrap; padding: 0 1; }
    LoadScreen #lower { height: 1fr; }
    LoadScreen.-normal LoadForm Choice, LoadScreen.-normal LoadForm Input { width: 18; }
    LoadScreen.-normal LoadForm #policy { width: 28; }
    LoadScreen.-normal LoadForm #targets { width: 1fr; }
    LoadScreen #targets_grid { height: 4; min-height: 3; }
    LoadScreen #charts { height: 1fr; grid-size: 2 1; grid-gutter: 0 1; }
    LoadScreen.-narrow #charts { grid-size: 1 1; }
    LoadScreen #charts Chart { width: 1fr; height: 1fr; }
    LoadScreen.-narrow #iops { display: none; }
    LoadScreen #throughput, LoadScreen #in_flight { display: none; }
    LoadScreen.-tall.-wide #charts { grid-size: 2 2; }
    LoadScreen.-tall.-wide #throughput, LoadScreen.-tall.-wide #in_flight { display: block; }
    LoadScreen.-tall #knob_row { height: 8; }
    LoadScreen.-tall #knob_row.-policy { height: 9; }
    LoadScreen.-flat #load_message, LoadScreen.-narrow #load_message { height: 1; text-wrap: nowrap; }
    LoadScreen.-narrow KnobPanel { width: 25; }
    LoadScreen.-narrow.-flat #knob_row { height: 6; }
    LoadScreen.-tiny #knob_row { height: 1; }
    LoadScreen SlotLine.-off, LoadScreen GuardPanel.-off { display: none; }
    LoadScreen.-editing.-low #knob_row, LoadScreen.-editing.-low SlotLine { display: none; }
    LoadScreen.-editing.-flat #knob_row, LoadScreen.-editing.-flat SlotLine { display: none; }
    LoadScreen.-tiny #load_message, LoadScreen.-tiny GuardPanel, LoadScreen.-tiny SlotLine { display: none; }
    """

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)
        self._error = ""
        self._happened = ""
        """What happened on the host while the load ran."""
        self.form = with_actions(self, JobForm(self, self.report))
        self._guard = GuardAnswers(self)
        self._keys = with_actions(self, LoadKeys(self, lambda: app_state.controller, self.report, form=self.form))

    def compose_body(self) -> ComposeResult:
        """Compose state, knobs and their effect, then the form or the running load."""
        yield from compose_knobs()
        yield GuardPanel(" ", id="guard")
        with ContentSwitcher(initial="running", id="lower"):
            yield LoadForm(id="form")
            with Vertical(id="running"):
                columns = with_trend(default_columns("load"), "load", after="errors")
                yield Grid("load", columns, sort=NAME, id="targets_grid")
                with Cells(id="charts", classes="extra chart-area"):
                    yield from (panel.make() for panel in PANELS)

    def on_mount(self) -> None:
        """Update the state between frames while the load is busy, and start the load of `run`."""
        self.query_one("#targets_grid", Grid).waiting = "no load at this moment"
        self.set_interval(STATUS_PERIOD_S, self._tick)
        if self.app_state.controller is None:
            return
        self.form.fill(self.app_state.controller)
        if self.app_state.autostart:
            self.call_after_refresh(self._keys.action_load_start)

    def on_screen_resume(self) -> None:
        """Ask the guard again, too."""
        self._guard.forget()

    def show_frame(self, frame: Frame) -> None:
        """Targets, charts, effect and state."""
        targets = frame.tables.get("load")
        grid = self.query_one("#targets_grid", Grid)
        charts = self.query_one("#charts").display
        fit_to_rows(
            grid, targets, max(FEWEST_GRID_LINES, self.query_one("#lower").size.height // 3) if charts else None
        )
        grid.trends = self.trends(frame, rows_of("load"))
        grid.show(targets, target_labels(targets))
        series = self._past(frame)
        for panel in PANELS:
            chart = self.query_one(f"#{panel.id}", Chart)
            if charts and chart.display:
                self._draw(chart, series, replace(panel, table="load_total"))
        self.query_one(EffectPanel).show(self._effect(frame), frame.monotonic_ns)
        self._happened = happened_text(self.app_state.events.all(), frame.monotonic_ns)
        self._show_state()

    def _draw(self, chart: Chart, series: Series | None, panel: Panel) -> None:
        """Draw a chart; before the first load no figures will come, so that it does not wait."""
        if series is None and not self.app_state.is_rewound and not self.app_state.transport.seekable:
            draw_nothing(chart, "no load yet")
        else:
            draw(chart, series, panel, self.app_state)

    def _past(self, frame: Frame) -> Series | None:
        """Return the history of the load up to a frame; a frame without a load adds a gap."""
        series = self.app_state.history.series("load_total", TOTAL_ROWS.keys[0], frame.time_ns, self.app_state.span_ns)
        if series is None or "load_total" in frame.tables:
            return series
        values = {field_id: np.append(past, np.nan) for field_id, past in series.values.items()}
        return Series(np.append(series.times_ns, frame.time_ns), values)

    def _effect(self, frame: Frame) -> Effect:
        """Compare around the last turn; None for a run in preparation or without samples."""
        effect = self.app_state.history.load.effect(self.app_state.events.all(), frame.monotonic_ns)
        controller = None if self.app_state.is_rewound else self.app_state.controller
        begins = controller is not None and controller.status.state in LIVE_STATES | BUSY_STATES
        if effect.ended and begins:
            return Effect()
        return effect if controller is None else _of_flip(effect, controller.memory.last_flip)

    # ------------------------------------------------------------------ state

    def _tick(self) -> None:
        controller = self.app_state.controller
        if controller is None or not self.is_whole:
            return
        self.form.try_again(controller)
        if self.is_current and (controller.status.state in BUSY_STATES or controller.status.outstanding):
            self._show_state()

    def _show_state(self) -> None:
        """Show the load as it is, or as it was at the moment shown."""
        controller = None if self.app_state.is_rewound else self.app_state.controller
        recorded = self._recorded() if controller is None else None
        title = REWOUND if self.app_state.is_rewound else OF_HOSTS if self.app_state.fleet is not None else REPLAYED
        self.query_one("#load_state", TextLine).put(state_line(controller, self.key_text, recorded, title))
        self.query_one("#load_message", TextLine).put(message_line(controller, self._error, self._happened))
        job = controller.job if controller is not None else recorded.job if recorded is not None else None
        policy = job is not None and uses_policy(job)
        self.query_one("#knob_row").set_class(policy, "-policy")
        knobs = controller.knobs if controller is not None else None if job is None else job.knobs
        targets = 0 if job is None else len(job.targets)
        self.query_one(KnobPanel).show(knobs, targets, None if controller is None else self.key_text, policy=policy)
        memory = None if controller is None else controller.memory
        slots = self.query_one(SlotLine)
        slots.set_class(memory is None, "-off")
        slots.show(memory, knobs, self._keys.step_size, self.key_text)
        self.form.follow(controller)
        self._guard.show()

    def _recorded(self) -> RecordedState | None:
        frame = self.app_state.frame
        return None if frame is None else recorded_state(self.app_state.events.all(), frame.monotonic_ns)

    def latency_subject(self) -> LatencySubject:
        """Return all targets of the load."""
        return WHOLE_LOAD

    def report(self, error: str) -> None:
        """Show a refusal or error; an empty text clears the line."""
        self._error = error
        self._show_state()

    @on(LoadForm.TargetsWanted)
    def _list_targets(self) -> None:
        LoadHere(self.app, self.app_state).choose(self.form.use_targets)

    @on(LoadForm.Edited)
    def _edited(self) -> None:
        self.form.edited()


def _of_flip(effect: Effect, flip: Flip | None) -> Effect:
    """Name the slots if the turn that is compared was a flip."""
    if flip is None or effect.turned_ns is None:
        return effect
    changes = [change.text for change in knob_changes(flip.before, flip.after)]
    return replace(effect, text=f"{flip.title}: {effect.text}") if effect.text == changes_text(changes) else effect


TYPING_S = 0.3
"""How long text must stay the same until the guard is asked."""
ROOMY = 30
"""Lines of a screen from which the panel may be high."""
_Asked = tuple[tuple[TargetSpec, ...], "int | None", Mode, Permissions]


class GuardAnswers:
    """Asks the guard about the targets of a job that does not run; shows nothing while one does."""

    def __init__(self, screen: View) -> None:
        self._screen, self._state = screen, screen.app_state
        self._asked: _Asked | None = None
        self._answers: Sequence[GuardAnswer] | None = None
        self._work = NewestWork("lunscope-guard", PATIENCE_S)
        self._pause: Timer | None = None

    def forget(self) -> None:
        """Ask again: what uses a target may have changed meanwhile."""
        self._asked = None

    def show(self) -> None:
        """Ask about other targets than before, and show what is known of them."""
        controller = self._state.controller
        panel = self._screen.query_one(GuardPanel)
        is_due = controller is not None and not self._state.is_rewound and not controller.has_load
        panel.set_class(not is_due, "-off")
        if controller is None or not is_due:
            self._asked = None
            return
        job = controller.job
        asked = (job.targets, job.size_bytes, job.knobs.mode, controller.permissions)
        if asked != self._asked:
            self._asked, self._answers = asked, None
            self._ask_soon(controller, job)
        panel.show(job.targets, self._answers, MOST_LINES if self._screen.size.height >= ROOMY else FEW_LINES)

    def _ask_soon(self, controller: LoadController, job: JobSpec) -> None:
        if self._pause is not None:
            self._pause.stop()
        self._pause = self._screen.set_timer(TYPING_S, lambda: self._ask(controller, job))

    def _ask(self, controller: LoadController, job: JobSpec) -> None:
        asked = self._asked
        if asked is None or asked[0] != job.targets:
            return
        permissions = asked[-1]

        def work() -> None:
            try:
                answers = controller.guard.answers(job, permissions)
            except (LunscopeError, OSError) as error:
                names = " ".join(map(format_target, job.targets))
                answers = (GuardAnswer(safe_text(names), None, str(error), str(error)),)
            self._screen.call_later(self._answered, asked, answers)

        self._work.request(work)

    def _answered(self, asked: _Asked, answers: Sequence[GuardAnswer]) -> None:
        if asked == self._asked and self._screen.is_whole:
            self._answers = answers
            self.show()
