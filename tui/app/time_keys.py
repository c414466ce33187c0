"""Moving in time: pause, step, seek, speed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.message import Message

from collectors.session.time_format import clock_text, parse_when
from engine.errors import UsageError
from engine.events import EventKind
from tui.screens.shared.dialogs import Dialog
from tui.transport import LiveTransport, ReplayTransport, Transport

if TYPE_CHECKING:
    from tui.app.app import LunscopeApp

SHORT_SEEK_S, LONG_SEEK_S = 10.0, 60.0


class MomentMoved(Message, bubble=False):
    """Another frame of a live host will be shown; of keys that repeat, only the last one draws."""

    def can_replace(self, message: Message) -> bool:
        """Any pending one asks for the same."""
        return isinstance(message, MomentMoved)


def beside(times_ns: Sequence[int], moment_ns: int, direction: int, reach_ns: tuple[int, int]) -> int | None:
    """Find the nearest time after a moment, or before it if `direction` is negative, within a range."""
    within = [time_ns for time_ns in times_ns if reach_ns[0] <= time_ns <= reach_ns[1]]
    if direction > 0:
        return min((time_ns for time_ns in within if time_ns > moment_ns), default=None)
    return max((time_ns for time_ns in within if time_ns < moment_ns), default=None)


class TimeKeys:
    """The keys that move the display of a live host, or the cursor of a recording."""

    def __init__(self, app: LunscopeApp) -> None:
        self._app, self._state = app, app.app_state

    @property
    def _transport(self) -> Transport:
        return self._state.transport

    @property
    def _replay(self) -> ReplayTransport:
        transport = self._state.transport
        assert isinstance(transport, ReplayTransport), "check_action keeps these keys from a live host"
        return transport

    def action_session_pause(self) -> None:
        """Pause the display, or resume."""
        self._state.transport.pause(self._state.frame)
        self._app.paint()

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
        self._go_beside(self._state.peaks_ns(), -1, "latency peak")

    def action_session_peak_forward(self) -> None:
        """To the next latency peak."""
        self._go_beside(self._state.peaks_ns(), 1, "latency peak")

    def _event_times(self, kind: EventKind | None = None) -> list[int]:
        return [event.time_ns for event in self._state.events.all() if kind in (None, event.kind)]

    def _go_beside(self, times_ns: Sequence[int], direction: int, what: str) -> None:
        """Seek to the next of these times in one direction, as far as there is data."""
        transport = self._transport
        found = beside(times_ns, transport.moment_ns, direction, (transport.start_ns, transport.end_ns))
        if found is not None:
            transport.seek(found)
        else:
            known = "" if transport.seekable else f" that is kept, from {clock_text(transport.start_ns)} on"
            self._app.notify(f"no {'later' if direction > 0 else 'earlier'} {what}{known}", timeout=3, markup=False)

    def action_session_slower(self) -> None:
        """Half the speed."""
        self._replay.change_speed(0.5)
        self._app.paint()

    def action_session_faster(self) -> None:
        """Twice the speed."""
        self._replay.change_speed(2.0)
        self._app.paint()

    def action_session_goto(self) -> None:
        """Ask for a time and seek to it."""
        start = clock_text(self._transport.start_ns)
        text = f"A time, such as 14:03, 14:03:22, 2026-05-01T14:03, or +10m (after {start}):"
        self._app.push_screen(Dialog("Go to", text), self._go_to)

    def _go_to(self, answer: str | None) -> None:
        if not answer:
            return
        transport = self._transport
        try:
            transport.seek(parse_when(answer, transport.start_ns, transport.end_ns))
        except UsageError as error:
            self._app.notify(str(error), severity="error", markup=False)
