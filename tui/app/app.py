"""The app: it owns the current frame, hands it to the screen on top, and routes actions."""

from __future__ import annotations

import functools
import gc
import time
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.events import Event, InputEvent
from textual.screen import ModalScreen
from textual.widgets import Input

from collectors.model import Source
from tui.action import Action
from tui.alert_state import AlertState
from tui.app.pages import DialogActions
from tui.app.quitting import Quitting
from tui.app.sampling_choices import IntervalChoice, TagWaitChoice
from tui.app.time_keys import MomentMoved
from tui.app_state import MOST_PEAKS, AppState, LatencyJump, Recording
from tui.compare_asked import CompareAsked
from tui.hints import Hints
from tui.history.charts import EventHistory, History
from tui.history.feed import Feed, FeedEnded, FrameArrived
from tui.keys import ANYWHERE_ACTIONS, BY_METHOD, bindings_of, is_usable
from tui.load.load_controller import LoadController
from tui.process.garbage import IdleCollection
from tui.screen_registry import COMPARE, LATENCY, LOAD, OVERVIEW, SWEEP, TABS, ScreenEntry
from tui.screens.shared.base import View, view_class
from tui.screens.shared.pages import open_page
from tui.screens.shared.process_scope import EVERYTHING
from tui.sweep.series import SweepSeries
from tui.terminal.driver import TerminalDriver
from tui.text.glyphs import choose_glyphs
from tui.theme.density import Density, KeptDensity
from tui.theme.kept_columns import KeptColumns
from tui.theme.kept_tables import KeptTables
from tui.theme.settings import Settings
from tui.transport import LiveTransport, ReplayTransport, transport_of
from tui.widgets.chart.widget import Chart

if TYPE_CHECKING:
    from collectors.alerts.service import AlertService
    from collectors.fleet.fleet_source import HostOrFleet
    from tui.app.watched import Watched
    from tui.load.fleet_load_controller import FleetLoadController

WAITS_PERIOD_S = 0.25
IDLE_CHECK_S = 0.5
LITE_PERIOD_S = 1.9
"""Least time between frames in a lite view: a little less than two intervals of a second."""
PEAKS_PERIOD_S = 0.5
"""Interval of updates while a recording is read."""
PAUSED_ACTIONS = {"session.back", "session.forward", "session.first", "session.last"}
ARROW_ACTIONS = {"session.back", "session.forward", "session.back_minute", "session.forward_minute"}
SELECTION_ACTIONS = {"view_processes", "view_ios", "load_here"}
"""Methods that ask the screen for what is selected there."""


class LunscopeApp(DialogActions, Quitting, inherit_bindings=False):
    """The app over any source of samples; the caller builds the source."""

    TITLE = "lunscope"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(ANYWHERE_ACTIONS)
    DEFAULT_MODE = OVERVIEW.id

    def __init__(
        self,
        source: Source,
        controller: LoadController | None = None,
        *,
        recording: Recording | None = None,
        settings: Settings | None = None,
        autostart: bool = False,
        sweeps: SweepSeries | None = None,
        compared: CompareAsked | None = None,
        alerts: AlertService | None = None,
        watched: Watched | None = None,
        fleet: HostOrFleet | None = None,
        fleet_load: FleetLoadController | None = None,
        first_screen: str | None = None,
        tune_root: Path | None = None,
    ) -> None:
        self.settings = self.settings_at_start = settings or Settings()
        super().__init__(glyphs=choose_glyphs(self.settings.glyphs), theme_folder=self.settings.theme_folder)
        self.save_folder = self.settings.save_folder
        columns = KeptColumns(self.settings.columns_file)
        self._kept_density = KeptDensity(self.settings.view_file)
        tables = KeptTables(self.settings.tables_file)
        wrong = (*self.settings.problems, *self.theme_notices, *self._choose_theme())
        self._shown_share = self._painted_s = 0.0
        self.app_state = AppState(
            transport=transport_of(source),
            history=History(),
            events=EventHistory(),
            controller=controller,
            recording=recording,
            interval_s=source.interval_s,
            autostart=controller is not None and autostart,
            keys=self.settings.keys,
            sweeps=sweeps or SweepSeries(),
            compared=compared,
            columns=columns,
            tables=tables,
            hints=Hints(self.settings.hints_file if self.settings.hints else None),
            density=self.settings.view or self._kept_density.chosen or Density.NORMAL,
            fleet=fleet,
        )
        self.keep_wrong_settings(wrong)
        self.app_state.alerts = AlertState(alerts, self.app_state.events, seekable=self.app_state.transport.seekable)
        self.app_state.tune_root, self.app_state.fleet_load = tune_root, fleet_load
        self._alerts, self._rung, self._first_screen = alerts, 0, first_screen
        self._collection = IdleCollection()
        self._tags = TagWaitChoice(source)
        self._feed = Feed(
            source, self.app_state.transport, self.app_state.history, self.app_state.events, self.post_message
        )
        self._interval = IntervalChoice(source, self.app_state, self._feed.request_sample)
        if isinstance(self.app_state.transport, LiveTransport):
            self.app_state.transport.follow(self.app_state.history.intervals, lambda: self.post_message(MomentMoved()))
        if watched is not None:
            self._feed.summed_up_in(watched.add)
        if controller is not None:
            self._feed.observed_by(controller.watch.observe)
            controller.watch.attach(self._feed.request_sample)
        self.make_palette()
        for entry in TABS:
            self.add_mode(entry.id, functools.partial(self._make_screen, entry))

    @property
    def wants_mouse(self) -> bool:
        """Whether the terminal is asked for clicks and moves."""
        return self.settings_at_start.asks_for_mouse

    def on_mount(self) -> None:
        """Draw the empty screen first, then read the first sample."""
        self.report_wrong_settings()
        self.set_keymap(self.settings.keys)
        if self.app_state.autostart:
            self.switch_mode(LOAD.id)
        if self.app_state.sweeps.current is not None:
            self.switch_mode(SWEEP.id)
        if self.app_state.compared is not None:
            self.switch_mode(COMPARE.id)
        if self._first_screen is not None:
            self.switch_mode(self._first_screen)
        elif self.app_state.fleet is not None:
            self.action_view_hosts()
        self.call_after_refresh(self._feed.start)
        self.call_after_refresh(self.watch_settings)
        self._collection.begin()
        self.set_interval(IDLE_CHECK_S, self._collection.collect_if_idle)
        if self.app_state.controller is not None:
            self.set_interval(WAITS_PERIOD_S, self.name_waits)
        self.call_later(self.paint_at_once)

    async def on_event(self, event: Event) -> None:
        """Note when keys were pressed last."""
        if isinstance(event, InputEvent):
            self._collection.typed()
        await super().on_event(event)

    def on_unmount(self) -> None:
        """End the feed before the loop that it posts to, and begin to end a sweep."""
        self.app_state.sweeps.close()
        self.end_watch_of_settings()
        self.app_state.tables.write()
        self._feed.close()
        if self.app_state.recording_peaks is not None:
            self.app_state.recording_peaks.close()

    def _make_screen(self, entry: ScreenEntry) -> View:
        return view_class(entry)(self.app_state)

    def _choose_theme(self) -> tuple[str, ...]:
        self.first_theme = self.theme
        self.file_theme = self.settings.theme if self.settings.theme in self.available_themes else None
        wanted = self.settings.theme_option or self.settings.theme or self.theme
        if wanted in self.available_themes:
            self.theme = wanted
            return ()
        offered = ", ".join(self.own_themes)
        return (f"no theme {wanted!r}; there are {offered} and Textual's own",)

    # ----------------------------------------------------------------- frames

    def on_frame_arrived(self, message: FrameArrived) -> None:
        """Show a frame, unless the display is paused."""
        if self.app_state.frame is None:
            self.call_after_refresh(gc.freeze)
            self.call_after_refresh(self._read_peaks)
        self.app_state.latest = message.frame
        self._ring()
        self.app_state.transport.arrived()
        self.app_state.frame = self.app_state.transport.shown(message.frame)
        if self._is_due():
            self.paint()

    def _is_due(self) -> bool:
        """Whether a frame is to be drawn: in a lite view of a live host, few are."""
        transport, now_s = self.app_state.transport, time.monotonic()
        skips = self.app_state.density is Density.LITE and not transport.seekable and not self.app_state.is_rewound
        if skips and now_s < self._painted_s + LITE_PERIOD_S:
            return False
        self._painted_s = now_s
        return True

    def on_moment_moved(self) -> None:
        """Show another frame of a live host, and the keys that work now."""
        if self.app_state.latest is not None:
            self.app_state.frame = self.app_state.transport.shown(self.app_state.latest)
        view = self._view
        if view is not None:
            with self.batch_update():
                view.refresh_view()

    def _read_peaks(self) -> None:
        """Begin to read the peaks of a recording, and show them as they are found."""
        transport = self.app_state.transport
        if isinstance(transport, ReplayTransport) and self.is_running:
            from collectors.latency.recording_peaks import RecordingPeaks  # noqa: PLC0415 (it can wait until the first screen is drawn)

            self.app_state.recording_peaks = RecordingPeaks(transport.source, MOST_PEAKS)
            self.app_state.recording_peaks.begin()
            self.set_interval(PEAKS_PERIOD_S, self._show_peaks)

    def _show_peaks(self) -> None:
        """Show what was read of the recording since, and read on where it has grown."""
        peaks, view = self.app_state.recording_peaks, self._view
        if peaks is None or not self.screen_stack or view is None:
            return
        if peaks.share != self._shown_share and view.is_whole:
            self._shown_share = peaks.share
            view.show_peaks()
        peaks.begin()

    def _ring(self) -> None:
        """Ring the bell for new alerts if the settings ask for it."""
        raised = 0 if self._alerts is None else self._alerts.raised
        if self._alerts is not None and self._alerts.settings.bell and raised > self._rung:
            self.bell()
        self._rung = raised

    def on_feed_ended(self, message: FeedEnded) -> None:
        """Report why the source ended; screen and load continue."""
        self.app_state.ended = message.reason
        if message.reason:
            self.notify(message.reason, title="The monitor stopped", severity="error", timeout=30, markup=False)
        self.paint()

    def paint(self) -> None:
        """Draw the topmost view, which a dialog may cover; not before it is mounted."""
        if not self.is_running:
            return
        view = self._view
        if view is not None and view.is_whole:
            with self.batch_update():
                view.show(self.app_state.frame)

    def redraw_view(self) -> None:
        """Draw the topmost view again with its key line."""
        if self._view is not None:
            self._view.refresh_view()

    @property
    def _view(self) -> View | None:
        """The topmost view, which a dialog may cover."""
        return next((screen for screen in reversed(self.screen_stack) if isinstance(screen, View)), None)

    # ---------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 - Textual's signature
        """Whether an action is available now: replay keys need a recording and do not work in text fields."""
        entry = BY_METHOD.get(action)
        if entry is None:
            return True
        if entry.priority and self._is_taken(entry):
            return False
        if action in SELECTION_ACTIONS and isinstance(self.screen, View) and not self.screen.is_whole:
            return False
        view = self._view
        load = self.app_state.drives(None if view is None else view.ENTRY)
        return is_usable(entry, replay=self.app_state.transport.seekable, load=load)

    def _is_taken(self, action: Action) -> bool:
        """Whether the focused widget uses the keys itself: a text field all, charts and walls the arrows.

        On a live host tables keep their arrows, Home and End until the display is paused.
        """
        if action.id in ("session.suspend", "session.redraw"):
            return False
        if action.id in PAUSED_ACTIONS and not self.app_state.is_rewound and not self.app_state.transport.seekable:
            return True
        if isinstance(self.screen, ModalScreen) or isinstance(self.focused, Input):
            return True
        takes_arrows = getattr(self.focused, "TAKES_ARROWS", False)
        return takes_arrows and action.id in ARROW_ACTIONS

    def action_show_screen(self, screen_id: str) -> None:
        """Show a registered screen; if it is covered by a page that was opened from it, close the page."""
        if self.current_mode != screen_id:
            self.switch_mode(screen_id)
            return
        while len(self.screen_stack) > 1 and not isinstance(self.screen, ModalScreen):
            self.pop_screen()

    def action_view_processes(self) -> None:
        """Show the processes with I/O on what is selected on the screen; on all devices if nothing is."""
        from tui.screens.processes import ProcessesView  # noqa: PLC0415 - as above

        view, frame = self.screen, self.app_state.frame
        if isinstance(view, View) and not isinstance(view, ProcessesView) and frame is not None:
            open_page(self, ProcessesView(self.app_state, view.process_scope(frame) or EVERYTHING))

    def action_view_caches(self) -> None:
        """Show the caches of the host."""
        from tui.screens.caches import CachesView  # noqa: PLC0415 - as above

        if isinstance(self.screen, View):
            open_page(self, CachesView(self.app_state))

    def action_view_nfs(self) -> None:
        """Show the NFS mounts of the host."""
        from tui.screens.nfs import NfsView  # noqa: PLC0415 - as above

        if isinstance(self.screen, View):
            open_page(self, NfsView(self.app_state))

    def action_view_hosts(self) -> None:
        """Show the hosts of a fleet, and the figures of all of them again if one was shown alone."""
        from tui.screens.hosts import HostsView  # noqa: PLC0415 - as above

        fleet = self.app_state.fleet
        if fleet is not None and fleet.focus is not None:
            fleet.set_focus(None)
        if isinstance(self.screen, View):
            open_page(self, HostsView(self.app_state))

    def action_view_ios(self) -> None:
        """Show the slowest I/Os of the screen's subject, at the time under the cursor if there is one."""
        view, chart = self.screen, self.focused
        subject = view.latency_subject() if isinstance(view, View) else None
        moment_ns = chart.inspected_ns if isinstance(chart, Chart) else None
        self.app_state.jump = LatencyJump(subject, moment_ns)
        self.action_show_screen(LATENCY.id)
        self.paint()

    def action_load_here(self) -> None:
        """Set up a load that reads the disk under the cursor, or ask for targets; nothing is started."""
        from tui.screens.load.here import LoadHere  # noqa: PLC0415 - as above

        if isinstance(self.screen, View):
            LoadHere(self, self.app_state).begin(self.screen)

    def action_view_density(self) -> None:
        """Show more or less on every screen, and keep that for the next start."""
        self.app_state.density = density = self.app_state.density.following
        problem = self._kept_density.keep(density)
        # What was chosen by the settings is in force again at the next start.
        fate = f"; {self.settings.view} at the next start, by the settings" if self.settings.view else ""
        self.notify(problem or f"view: {density}{fate}", timeout=4, markup=False)
        view = self._view
        if view is not None:
            view.take_density()
            self.call_after_refresh(view.refresh_view)

    def action_session_tags(self) -> None:
        """Trace waits for free tags always, never, or while a queue is full (auto)."""
        self.notify(self._tags.turn(), markup=False)

    def action_session_sooner(self) -> None:
        """Sample at the next shorter interval."""
        self.notify(self._interval.turn(-1), timeout=2, markup=False)
        self.paint()

    def action_session_later(self) -> None:
        """Sample at the next longer interval."""
        self.notify(self._interval.turn(1), timeout=2, markup=False)
        self.paint()

    def action_session_suspend(self) -> None:
        """Stop the process and give the terminal to the shell until `fg`."""
        if isinstance(self._driver, TerminalDriver):
            self._driver.suspend()
        else:
            self.notify("there is no shell to go back to", markup=False)

    def action_session_redraw(self) -> None:
        """Send the whole screen to the terminal again."""
        if isinstance(self._driver, TerminalDriver):
            self._driver.cells.forget()
        self.screen.refresh()
