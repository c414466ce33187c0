"""Actions of the latency screen, and the dialog that selects its subject."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from collectors.latency.subjects import Direction, LatencySubject, Part, offered_subjects, parts_of, series_of
from collectors.latency.ticks import LatencyTicks
from tui.app_state import AppState
from tui.screens.base import View
from tui.theme.laid_out import Modal
from tui.transport import ReplayTransport
from tui.widgets.heatmap.widget import HeatMap
from tui.widgets.line import TextLine
from tui.widgets.lister import Options

MOST_LISTED = 200
"""Largest number of listed lines; typing narrows the list."""


class SubjectPicker(Modal[LatencySubject | None]):
    """A list filtered by typing; Enter selects the line under the cursor, Esc cancels."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Leave", show=False),
        Binding("up", "move(-1)", "Up", show=False, priority=True),
        Binding("down", "move(1)", "Down", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    SubjectPicker { align: center middle; }
    SubjectPicker Vertical {
        width: 72; max-width: 100%; height: 20; max-height: 100%;
        border: round $accent; padding: 0 1; background: $surface;
    }
    SubjectPicker OptionList { height: 1fr; border: none; padding: 0; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, subjects: Sequence[LatencySubject], present: LatencySubject | None) -> None:
        super().__init__()
        self._subjects = subjects
        self._present = present
        self._listed: list[LatencySubject] = []

    def compose(self) -> ComposeResult:
        """Filter, list, count."""
        box = Vertical()
        box.border_title = "Latency of which subject"
        with box:
            yield Input(placeholder="type part of a name", compact=True)
            yield Options(markup=False, compact=True)
            yield TextLine(" ")

    def on_mount(self) -> None:
        """List all."""
        self._list("")

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        self._list(event.value)

    def _list(self, typed: str) -> None:
        words = typed.lower().split()
        found = [one for one in self._subjects if all(word in one.title.lower() for word in words)]
        self._listed = found[:MOST_LISTED]
        listing = self.query_one(OptionList)
        listing.clear_options()
        listing.add_options(Option(Content(one.title)) for one in self._listed)
        if self._listed:
            listing.highlighted = self._listed.index(self._present) if self._present in self._listed else 0
        rest = f", the first {MOST_LISTED} listed: type more" if len(found) > MOST_LISTED else ""
        self.query_one(TextLine).put(f"{len(found)} of {len(self._subjects)}{rest}   Enter: show   Esc: cancel")

    def action_move(self, lines: int) -> None:
        """Move the cursor of the list while typing."""
        listing = self.query_one(OptionList)
        if self._listed:
            listing.highlighted = min(max((listing.highlighted or 0) + lines, 0), len(self._listed) - 1)

    @on(Input.Submitted)
    def _take_highlighted(self) -> None:
        position = self.query_one(OptionList).highlighted
        self.dismiss(None if position is None else self._listed[position])

    @on(OptionList.OptionSelected)
    def _take(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._listed[event.option_index])


@dataclass(slots=True)
class LatencyChoice:
    """Owned by the latency screen; a part that a subject lacks falls back to one it has."""

    subject: LatencySubject | None = None
    part: Part | None = None
    direction: Direction = Direction.BOTH

    def series(self, ticks: LatencyTicks | None) -> tuple[str, ...]:
        """Series to add up; none if there are none of that kind."""
        offered = () if ticks is None else parts_of(ticks.series)
        if ticks is None or not offered:
            return ()
        if self.part not in offered:
            self.part = Part.SERVICE if Part.SERVICE in offered else offered[0]
        return series_of(ticks.series, self.part, self.direction)

    def next_direction(self) -> None:
        """Take the next of both, reads, writes."""
        every = tuple(Direction)
        self.direction = every[(every.index(self.direction) + 1) % len(every)]

    def next_part(self, ticks: LatencyTicks | None) -> bool:
        """Take the next part the subject has; whether there is another."""
        offered = () if ticks is None else parts_of(ticks.series)
        if self.part not in offered or len(offered) < 2:
            return False
        self.part = offered[(offered.index(self.part) + 1) % len(offered)]
        return True

    def includes(self, source: str, key: str) -> bool:
        """Whether a row belongs to the subject."""
        subject = self.subject
        return subject is not None and subject.source == source and (not subject.keys or key in subject.keys)


class LatencyActions(View):
    """Selection and zoom; the screen shows the result."""

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)
        self.choice = LatencyChoice()

    @property
    def heat(self) -> HeatMap:
        """The heat map."""
        return self.query_one(HeatMap)

    @abstractmethod
    def empty_reason(self) -> str:
        """Say why there are no data, and the fix."""

    @abstractmethod
    def show_figures(self) -> None:
        """Update figures and lists: cursor, mark or window moved."""

    def follow(self, subject: LatencySubject | None) -> None:
        """Show another subject; in a replay its data are read again if not kept."""
        if subject is None or subject == self.choice.subject:
            return
        self.choice.subject = subject
        self.heat.start_over()
        complete = self.app_state.history.latencies.follow(subject)
        transport = self.app_state.transport
        if not complete and isinstance(transport, ReplayTransport):
            transport.seek(transport.position_ns)

    def action_latency_subject(self) -> None:
        """Ask for a subject."""
        frame = self.app_state.frame
        if frame is None:
            return
        subjects = list(offered_subjects(frame, self.app_state.history.latencies.offered()))
        if subjects:
            self.app.push_screen(SubjectPicker(subjects, self.choice.subject), self._picked)
        else:
            self.notify(self.empty_reason(), markup=False)

    def _picked(self, subject: LatencySubject | None) -> None:
        self.follow(subject)
        self.refresh_view()

    def action_latency_direction(self) -> None:
        """Take the next of both, reads, writes."""
        self.choice.next_direction()
        self.refresh_view()

    def action_latency_part(self) -> None:
        """Take the next part that this subject has."""
        if self.choice.next_part(self.app_state.history.latencies.ticks()):
            self.heat.start_over()
            self.refresh_view()
        elif self.choice.part is not None:
            self.notify(f"only the {self.choice.part} time of these I/Os is known", timeout=3, markup=False)

    def action_latency_mark(self) -> None:
        """Mark from here on, or clear the mark."""
        self.heat.toggle_mark()
        self.show_figures()

    def action_latency_zoom_in(self) -> None:
        """Half the time."""
        self.heat.zoom_time(0.5)
        self.show_figures()

    def action_latency_zoom_out(self) -> None:
        """Twice the time."""
        self.heat.zoom_time(2.0)
        self.show_figures()

    def action_latency_narrow(self) -> None:
        """Half the decades."""
        self.heat.zoom_latency(0.5)

    def action_latency_widen(self) -> None:
        """Twice the decades."""
        self.heat.zoom_latency(2.0)

    def action_latency_zoom_off(self) -> None:
        """All of it."""
        self.heat.zoom_off()
        self.show_figures()

    def action_latency_lines(self) -> None:
        """Percentile lines on or off."""
        self.heat.toggle_lines()

    def action_latency_seek(self) -> None:
        """Seek the recording to the cursor."""
        interval, transport = self.heat.interval_ns, self.app_state.transport
        if interval is not None and isinstance(transport, ReplayTransport):
            transport.seek(interval[1])
