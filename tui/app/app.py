"""The app: it owns the current frame, hands it to the screen on top, and routes actions."""

from __future__ import annotations

import functools
import gc
import time
from typing import ClassVar

from msgspec.structs import asdict
from textual.binding import BindingType
from textual.events import Event, InputEvent
from textual.screen import ModalScreen
from textual.widgets import Input

from tui.action import Action, with_actions
from tui.alert_state import AlertState
from tui.app.appearance import Appearance
from tui.app.notes import Notes
from tui.app.pages import Pages
from tui.app.palette import Palette
from tui.app.quitting import Quitting
from tui.app.sampling_choices import SamplingKeys
from tui.app.settings_editor import SettingsEditor
from tui.app.settings_in_force import SettingsChanged, SettingsInForce
from tui.app.time_keys import MomentMoved, TimeKeys
from tui.app.tuning import Tuning
from tui.app.watched import Watched
from tui.app_input import AppInput
from tui.app_state import MOST_PEAKS, AppState
from tui.history.charts import EventHistory, History
from tui.history.feed import Feed, FeedEnded, FrameArrived
from tui.kept import Choices, Density, Hints
from tui.keys import ANYWHERE_ACTIONS, BY_METHOD, bindings_of, is_usable
from tui.process.garbage import IdleCollection
from tui.screen_registry import COMPARE, LOAD, OVERVIEW, SWEEP, TABS, ScreenEntry
from tui.screens.shared.base import View, view_class
from tui.settings import Settings
from tui.text.glyphs import choose_glyphs
from tui.textual_internals.themed_app import ThemedApp
from tui.transport import LiveTransport, ReplayTransport, transport_of

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


class LunscopeApp(ThemedApp[None], inherit_bindings=False):
    """The app over any source of samples, which the caller builds; each of its parts has the actions of one subject."""

    TITLE = "lunscope"
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(ANYWHERE_ACTIONS)
    DEFAULT_MODE = OVERVIEW.id

    def __init__(self, given: AppInput, *, settings: Settings | None = None) -> None:
        settings = settings or Settings()
        super().__init__(glyphs=choose_glyphs(settings.glyphs), theme_folder=settings.theme_folder)
        choices = Choices(settings.choices_folder, Hints(settings.hints_file if settings.hints else None))
        transport, events = transport_of(given.source), EventHistory()
        self.app_state = state = AppState(
            **asdict(given),
            transport=transport,
            history=History(),
            events=events,
            interval_s=given.source.interval_s,
            keys=settings.keys,
            alerts=AlertState(given.alert_service, events, seekable=transport.seekable),
            choices=choices,
            density=settings.view or choices.view.of("view") or Density.NORMAL,
        )
        self.watched = Watched() if given.is_summed_up else None
        """What was seen, to be printed at the end."""
        self._shown_share = self._painted_s = 0.0
        self._rung = 0
        self._collection = IdleCollection()
        self._feed = Feed(given.source, transport, state.history, events, self.post_message)
        if isinstance(transport, LiveTransport):
            transport.follow(state.history.intervals, lambda: self.post_message(MomentMoved()))
        if self.watched is not None:
            self._feed.summed_up_in(self.watched.add)
        if given.controller is not None:
            self._feed.observed_by(given.controller.watch.observe)
            given.controller.watch.attach(self._feed.request_sample)
        for entry in TABS:
            self.add_mode(entry.id, functools.partial(self._make_screen, entry))
        self.settings = SettingsInForce(self, settings)
        self.palette = with_actions(self, Palette(self))
        self.pages = with_actions(self, Pages(self))
        self.appearance = with_actions(self, Appearance(self, settings.save_folder))
        self.quitting = with_actions(self, Quitting(self))
        sampling = with_actions(self, SamplingKeys(self, given.source, self._feed.request_sample))
        self.editor = with_actions(self, SettingsEditor(self, sampling))
        for part in (TimeKeys(self), Notes(self), Tuning(self)):
            with_actions(self, part)

    @property
    def wants_mouse(self) -> bool:
        """Whether the terminal is asked for clicks and moves."""
        return self.settings.at_start.asks_for_mouse

    def on_mount(self) -> None:
        """Draw the empty screen first, then read the first sample."""
        self.settings.report_wrong()
        self.set_keymap(self.settings.now.keys)
        if self.app_state.autostart:
            self.switch_mode(LOAD.id)
        if self.app_state.sweeps.current is not None:
            self.switch_mode(SWEEP.id)
        if self.app_state.compared is not None:
            self.switch_mode(COMPARE.id)
        if self.app_state.first_screen is not None:
            self.switch_mode(self.app_state.first_screen)
        elif self.app_state.fleet is not None:
            self.pages.action_view_hosts()
        self.call_after_refresh(self._feed.start)
        self.call_after_refresh(self.settings.watch)
        self._collection.begin()
        self.set_interval(IDLE_CHECK_S, self._collection.collect_if_idle)
        if self.app_state.controller is not None:
            self.set_interval(WAITS_PERIOD_S, self.quitting.name_waits)
        self.call_later(self.paint_at_once)

    async def on_event(self, event: Event) -> None:
        """Note when keys were pressed last."""
        if isinstance(event, InputEvent):
            self._collection.typed()
        await super().on_event(event)

    def on_unmount(self) -> None:
        """End the feed before the loop that it posts to, and begin to end a sweep."""
        self.app_state.sweeps.close()
        self.settings.end_watch()
        self.app_state.choices.close()
        self._feed.close()
        if self.app_state.recording_peaks is not None:
            self.app_state.recording_peaks.close()

    def _make_screen(self, entry: ScreenEntry) -> View:
        return view_class(entry)(self.app_state)

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
        """Whether to draw a frame: in a lite view of a live host few are drawn."""
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
        view = self.top_view
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
        peaks, view = self.app_state.recording_peaks, self.top_view
        if peaks is None or not self.screen_stack or view is None:
            return
        if peaks.share != self._shown_share and view.is_whole:
            self._shown_share = peaks.share
            view.show_peaks()
        peaks.begin()

    def _ring(self) -> None:
        """Ring the bell for new alerts if the settings ask for it."""
        alerts = self.settings.alerts
        raised = 0 if alerts is None else alerts.raised
        if alerts is not None and alerts.settings.bell and raised > self._rung:
            self.bell()
        self._rung = raised

    def on_settings_changed(self, message: SettingsChanged) -> None:
        """Take up what changed in the files of settings and themes."""
        self.settings.take(message.read)

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
        view = self.top_view
        if view is not None and view.is_whole:
            with self.batch_update():
                view.show(self.app_state.frame)

    def redraw_view(self) -> None:
        """Draw the topmost view again with its key line."""
        if self.top_view is not None:
            self.top_view.refresh_view()

    @property
    def top_view(self) -> View | None:
        """The topmost view, which a dialog may cover."""
        return next((screen for screen in reversed(self.screen_stack) if isinstance(screen, View)), None)

    @property
    def own_themes(self) -> list[str]:
        """Names of lunscope's themes."""
        return [name for name in self.available_themes if name.startswith("lunscope")]

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
        view = self.top_view
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

    def action_session_suspend(self) -> None:
        """Stop the process and give the terminal to the shell until `fg`."""
        if self.terminal_driver is not None:
            self.terminal_driver.suspend()
        else:
            self.notify("there is no shell to go back to", markup=False)

    def action_session_redraw(self) -> None:
        """Send the whole screen to the terminal again."""
        if self.terminal_driver is not None:
            self.terminal_driver.cells.forget()
        self.screen.refresh()
