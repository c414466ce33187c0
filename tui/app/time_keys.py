"""Actions of the keys that move in time, and of saving the screen; a mixin of the app."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

from textual.message import Message
from textual.timer import Timer

from collectors.session.time_format import clock_text, parse_when
from engine.errors import LunscopeError, UsageError
from engine.events import Event, EventKind
from engine.text import safe_text, short_text
from tui.app.screen_files import SavedScreen, save_screen, screen_folders, shown_lines, text_of_lines
from tui.app_state import AppState
from tui.axis_choice import AxisChoice
from tui.screens.shared.dialogs import Dialog
from tui.text.format import SECOND_NS, day_and_clock, span_text
from tui.theme.themed_app import ThemedApp
from tui.transport import LiveTransport, ReplayTransport, Transport

LONGEST_NOTE = 200
SHORT_SEEK_S, LONG_SEEK_S = 10.0, 60.0
BRIEF_S = 2.0
SPANS_S = (60, 300, 900, 3600)
"""Lengths of the chart history."""


class MomentMoved(Message, bubble=False):
    """Another frame of a live host is to be shown; of keys that repeat, only the last one draws."""

    def can_replace(self, message: Message) -> bool:
        """Any pending one asks for the same."""
        return isinstance(message, MomentMoved)


def beside(times_ns: Sequence[int], moment_ns: int, direction: int, reach_ns: tuple[int, int]) -> int | None:
    """Find the nearest time after a moment, or before it if `direction` is negative, within a range."""
    within = [time_ns for time_ns in times_ns if reach_ns[0] <= time_ns <= reach_ns[1]]
    if direction > 0:
        return min((time_ns for time_ns in within if time_ns > moment_ns), default=None)
    return max((time_ns for time_ns in within if time_ns < moment_ns), default=None)


class SessionActions(ThemedApp[None]):
    """Pause, step, seek, speed, and length of the chart history."""

    app_state: AppState
    _brief_timer: Timer | None = None
    save_folder: Path | None = None
    """Where the screen is saved, by the settings."""

    @abstractmethod
    def paint(self) -> None:
        """Draw the screen on top again."""

    @property
    def _transport(self) -> Transport:
        return self.app_state.transport

    @property
    def _replay(self) -> ReplayTransport:
        transport = self.app_state.transport
        assert isinstance(transport, ReplayTransport), "check_action keeps these keys from a live host"
        return transport

    def action_view_save(self) -> None:
        """Save the screen as SVG and text, and show where, or why not."""
        screen = SavedScreen(self.export_screenshot(), text_of_lines(shown_lines(self)))
        try:
            saved = save_screen(screen, screen_folders(self.save_folder))
        except LunscopeError as error:
            self.notify(safe_text(str(error)), severity="error", timeout=15, markup=False)
            return
        self.notify(f"screen saved: {safe_text(str(saved))}.svg, .txt", timeout=10, markup=False)

    def action_session_pause(self) -> None:
        """Pause the display, or resume."""
        self.app_state.transport.pause(self.app_state.frame)
        self.paint()

    def action_session_step_back(self) -> None:
        """One sample back."""
        self._transport.step(-1)

    def action_session_step_forward(self) -> None:
        """One sample forward."""
        self._transport.step(1)

    def action_session_back(self) -> None:
        """Seek back 10 s."""
        self._transport.move(-SHORT_SEEK_S)

    def action_session_forward(self) -> None:
        """Seek forward 10 s."""
        self._transport.move(SHORT_SEEK_S)

    def action_session_back_minute(self) -> None:
        """Seek back 1 min."""
        self._transport.move(-LONG_SEEK_S)

    def action_session_forward_minute(self) -> None:
        """Seek forward 1 min."""
        self._transport.move(LONG_SEEK_S)

    def action_session_first(self) -> None:
        """To the first sample."""
        self._transport.seek(self._transport.start_ns)

    def action_session_last(self) -> None:
        """To the last sample, or back to the present."""
        transport = self._transport
        if isinstance(transport, LiveTransport):
            transport.resume()
        else:
            transport.seek(transport.end_ns)

    def action_session_event_back(self) -> None:
        """To the event before."""
        self._go_beside(self._event_times(), -1, "event")

    def action_session_event_forward(self) -> None:
        """To the next event."""
        self._go_beside(self._event_times(), 1, "event")

    def action_session_mark_back(self) -> None:
        """To the mark or note before."""
        self._go_beside(self._event_times(EventKind.NOTE), -1, "mark")

    def action_session_mark_forward(self) -> None:
        """To the next mark or note."""
        self._go_beside(self._event_times(EventKind.NOTE), 1, "mark")

    def action_session_peak_back(self) -> None:
        """To the latency peak before."""
        self._go_beside(self.app_state.peaks_ns(), -1, "latency peak")

    def action_session_peak_forward(self) -> None:
        """To the next latency peak."""
        self._go_beside(self.app_state.peaks_ns(), 1, "latency peak")

    def _event_times(self, kind: EventKind | None = None) -> list[int]:
        return [event.time_ns for event in self.app_state.events.all() if kind in (None, event.kind)]

    def _go_beside(self, times_ns: Sequence[int], direction: int, what: str) -> None:
        """Seek to the next of these times in one direction, as far as there is data."""
        transport = self._transport
        found = beside(times_ns, transport.moment_ns, direction, (transport.start_ns, transport.end_ns))
        if found is not None:
            transport.seek(found)
        else:
            known = "" if transport.seekable else f" that is kept, from {clock_text(transport.start_ns)} on"
            self.notify(f"no {'later' if direction > 0 else 'earlier'} {what}{known}", timeout=3, markup=False)

    def action_session_slower(self) -> None:
        """Half the speed."""
        self._replay.change_speed(0.5)
        self.paint()

    def action_session_faster(self) -> None:
        """Twice the speed."""
        self._replay.change_speed(2.0)
        self.paint()

    def action_session_goto(self) -> None:
        """Ask for a time and seek to it."""
        start = clock_text(self._transport.start_ns)
        text = f"A time, such as 14:03, 14:03:22, 2026-05-01T14:03, or +10m (after {start}):"
        self.push_screen(Dialog("Go to", text), self._go_to)

    def _go_to(self, answer: str | None) -> None:
        if not answer:
            return
        transport = self._transport
        try:
            transport.seek(parse_when(answer, transport.start_ns, transport.end_ns))
        except UsageError as error:
            self.notify(str(error), severity="error", markup=False)

    def action_session_note(self) -> None:
        """Ask for a note at the moment that is shown."""
        moment = self._moment()
        text = f"A note at {day_and_clock(moment[0])}, {self._note_fate}:"
        self.push_screen(Dialog("Note", text), lambda words: self._write_note(words, moment))

    def _write_note(self, words: str | None, moment: tuple[int, int]) -> None:
        if words and words.strip():
            self.add_note(words.strip(), moment)

    def action_session_mark(self) -> None:
        """Write a numbered note at the moment that is shown."""
        marks = sum("mark" in event.data for event in self.app_state.events.all())
        self.add_note(f"mark {marks + 1}", self._moment(), mark=marks + 1)

    def add_note(self, words: str, moment: tuple[int, int], **data: int | str) -> None:
        """Add a note to the events, and to the recording if there is one."""
        event = Event(EventKind.NOTE, short_text(words, LONGEST_NOTE), *moment, data)
        self.app_state.events.add([event])
        if self.app_state.recording is not None:
            self.app_state.recording.add_event(event)
        self.notify(f"{safe_text(event.text)}: {self._note_fate}", timeout=4, markup=False)
        self.paint()

    @property
    def _note_fate(self) -> str:
        if self.app_state.recording is not None and not self.app_state.recording.trouble:
            return "recorded"
        return "kept until you leave" + (": a replay writes nothing" if self.app_state.transport.seekable else "")

    def clearing_moment(self) -> tuple[int, int]:
        """Wall and monotonic time from which cleared counters count: of a live host always the present."""
        return self._moment() if self.app_state.transport.seekable else (time.time_ns(), time.monotonic_ns())

    def _moment(self) -> tuple[int, int]:
        """Wall and monotonic time of the frame of a replay or a paused display, else the present."""
        frame, transport = self.app_state.frame, self.app_state.transport
        if frame is not None and (transport.seekable or transport.paused):
            return frame.time_ns, frame.monotonic_ns
        return time.time_ns(), time.monotonic_ns()

    def action_view_longer(self) -> None:
        """Lengthen the chart history."""
        self._change_span(1)

    def action_view_shorter(self) -> None:
        """Shorten the chart history."""
        self._change_span(-1)

    def action_view_log(self) -> None:
        """Change the axis of the charts of latency."""
        choices = tuple(AxisChoice)
        position = choices.index(self.app_state.latency_axis) + 1
        self.app_state.latency_axis = axis = choices[position % len(choices)]
        self.notify(f"latency charts: {axis} axis", timeout=2, markup=False)
        self.paint()

    def _change_span(self, direction: int) -> None:
        position = SPANS_S.index(self.app_state.span_ns // SECOND_NS) + direction
        self.app_state.span_ns = SPANS_S[min(max(position, 0), len(SPANS_S) - 1)] * SECOND_NS
        self._say(f"charts show the last {span_text(self.app_state.span_ns / SECOND_NS)}")
        self.paint()

    def _say(self, text: str) -> None:
        """Show a text for a moment: a notice would lay the screen out again, at more cost than all else of a key."""
        self.app_state.brief = text
        if self._brief_timer is not None:
            self._brief_timer.stop()
        self._brief_timer = self.set_timer(BRIEF_S, self._end_brief)

    def _end_brief(self) -> None:
        self.app_state.brief = ""
        self.paint()
