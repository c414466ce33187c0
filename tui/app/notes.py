"""Notes, marks, and the counters that are cleared: events that the operator makes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from collectors.reports.totals.level import WHOLE_HOST, CountSubject
from engine.events import Event, EventKind
from engine.text import safe_text, short_text
from tui.screens.shared.base import View
from tui.screens.shared.dialogs import Dialog
from tui.text.format import day_and_clock

if TYPE_CHECKING:
    from tui.app.app import LunscopeApp

LONGEST_NOTE = 200


class Notes:
    """Writes events at the moment that is shown; they are kept, and recorded if there is a recording."""

    def __init__(self, app: LunscopeApp) -> None:
        self._app, self._state = app, app.app_state

    def action_session_note(self) -> None:
        """Ask for a note at the moment that is shown."""
        moment = self._moment()
        text = f"A note at {day_and_clock(moment[0])}, {self._note_fate}:"
        self._app.push_screen(Dialog("Note", text), lambda words: self._write_note(words, moment))

    def _write_note(self, words: str | None, moment: tuple[int, int]) -> None:
        if words and words.strip():
            self._add(words.strip(), moment)

    def action_session_mark(self) -> None:
        """Write a numbered note at the moment that is shown."""
        marks = sum("mark" in event.data for event in self._state.events.all())
        self._add(f"mark {marks + 1}", self._moment(), mark=marks + 1)

    def _add(self, words: str, moment: tuple[int, int], **data: int | str) -> None:
        """Add a note to the events, and to the recording if there is one."""
        event = Event(EventKind.NOTE, short_text(words, LONGEST_NOTE), *moment, data)
        self._state.events.add([event])
        if self._state.recording is not None:
            self._state.recording.add_event(event)
        self._app.notify(f"{safe_text(event.text)}: {self._note_fate}", timeout=4, markup=False)
        self._app.paint()

    @property
    def _note_fate(self) -> str:
        if self._state.recording is not None and not self._state.recording.trouble:
            return "recorded"
        return "kept until you leave" + (": a replay writes nothing" if self._state.transport.seekable else "")

    def action_session_clear(self) -> None:
        """Count what is under the cursor from now on; the host if nothing is."""
        from tui.screens.paths.sheet_data import subject_of  # noqa: PLC0415 (as above)

        view, frame = self._app.screen, self._state.frame
        if not isinstance(view, View) or frame is None:
            return
        selected = view.sheet_subject()
        self._clear(WHOLE_HOST if selected is None else subject_of(frame.topology, *selected))

    def action_clear_host(self) -> None:
        """Count the whole host from now on."""
        self._clear(WHOLE_HOST)

    def _clear(self, subject: CountSubject) -> None:
        if not self._state.transport.seekable:
            self._state.history.totals.clear(subject)
        self._add(f"counters of {subject.words} cleared", self._clearing_moment(), **subject.mark)

    def _clearing_moment(self) -> tuple[int, int]:
        """Wall and monotonic time from which cleared counters count: of a live host always the present."""
        return self._moment() if self._state.transport.seekable else (time.time_ns(), time.monotonic_ns())

    def _moment(self) -> tuple[int, int]:
        """Wall and monotonic time of the frame of a replay or a paused display, else the present."""
        frame, transport = self._state.frame, self._state.transport
        if frame is not None and (transport.seekable or transport.paused):
            return frame.time_ns, frame.monotonic_ns
        return time.time_ns(), time.monotonic_ns()
