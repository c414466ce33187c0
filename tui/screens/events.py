"""The list of events; Enter seeks to one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import OptionList

from collectors.model import Frame
from collectors.paths.event_groups import CauseGroup, event_groups
from collectors.session.time_format import clock_text
from collectors.tables.block.all_disks import ALL_DISKS
from engine.events import Event, EventKind
from engine.text import safe_text
from tui.app_state import AppState
from tui.keys import bindings_of
from tui.load.candidates import device_of_event
from tui.screen_registry import EVENTS
from tui.screens.shared.base import View
from tui.screens.shared.subject_charts import SubjectCharts
from tui.screens.tune.effects import TuneEffectFound, TuneEffects, effect_line
from tui.text.format import day_and_clock
from tui.text.glyphs import glyphs_of
from tui.textual_internals.option_list import Options
from tui.widgets.line import TextLine
from tui.widgets.line_list import ItemOption

MOST_LISTED = 1000


class EventsScreen(View):
    """The newest events first."""

    ENTRY = EVENTS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(EVENTS.actions)
    DEFAULT_CSS = """
    EventsScreen OptionList { height: 1fr; border: none; padding: 0; text-wrap: nowrap; text-overflow: ellipsis; }
    EventsScreen #detail { height: 3; padding: 0 1; text-wrap: wrap; color: $text-muted; }
    EventsScreen.-tiny #count { display: none; }
    EventsScreen.-tall SubjectCharts { display: block; }
    """

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)
        self._version = -1
        self._effects = TuneEffects(app_state, self)
        self._listed: list[CauseGroup] = []
        self._opened: set[tuple[int, str]] = set()
        """Time and text of the first event of each open group."""

    def compose_body(self) -> ComposeResult:
        """Count and list."""
        yield TextLine(" no events yet", id="count")
        yield Options(markup=False, compact=True)
        yield TextLine(" ", id="detail", classes="extra")
        yield SubjectCharts()

    def show_frame(self, frame: Frame) -> None:
        """Update the list if the events changed, and how many of them are later than the frame."""
        self.query_one(SubjectCharts).show(self.app_state, frame, (ALL_DISKS, ALL_DISKS))
        log = self.app_state.events
        events = log.all()
        if log.version != self._version:
            self._version = log.version
            self._list(events)
        if not events:
            return
        self._describe_again()
        shown = "" if len(events) <= MOST_LISTED else f", the newest {MOST_LISTED} listed"
        later = sum(event.time_ns > frame.time_ns for event in events) if self.app_state.is_rewound else 0
        after = f", {later} after the moment shown" if later else ""
        self.query_one("#count", TextLine).put(f" {len(events)} events{shown}{after}; Enter seeks to it")

    def load_device(self) -> str | None:
        """Return the device that the event under the cursor names."""
        frame, position = self.app_state.frame, self.query_one(OptionList).highlighted
        event = None if position is None else self._listed[position].first
        return None if frame is None else device_of_event(event, frame.topology)

    def _list(self, events: list[Event]) -> None:
        """Fill the list, newest first; the cursor stays on its event, or on the newest."""
        listing = self.query_one(OptionList)
        position = listing.highlighted
        under_cursor = self._listed[position].first if position else None
        self._listed = list(self._rows(event_groups(events[-MOST_LISTED:])))
        listing.clear_options()
        listing.add_options(ItemOption(self._line(group), group.first) for group in self._listed)
        if events:
            firsts = [group.first for group in self._listed]
            listing.highlighted = firsts.index(under_cursor) if under_cursor in firsts else 0

    def _rows(self, groups: list[CauseGroup]) -> Iterator[CauseGroup]:
        """Yield the groups, newest first, and after an open one its events."""
        for group in reversed(groups):
            yield group
            if not group.is_single and _name_of(group) in self._opened:
                yield from (CauseGroup((event,), f"  {safe_text(event.text)}") for event in group.events)

    def action_events_unfold(self) -> None:
        """Open or close the group under the cursor."""
        position = self.query_one(OptionList).highlighted
        group = None if position is None or position >= len(self._listed) else self._listed[position]
        if group is None or group.is_single:
            self.notify("this is a single event", timeout=3, markup=False)
            return
        self._opened ^= {_name_of(group)}
        self._list(self.app_state.events.all())

    @on(OptionList.OptionSelected)
    def _go_there(self, event: OptionList.OptionSelected) -> None:
        transport = self.app_state.transport
        if not isinstance(event.option, ItemOption):
            return
        time_ns, start_ns = event.option.item.time_ns, transport.start_ns
        if time_ns < start_ns and not transport.seekable:
            text = f"no intervals are kept from before {clock_text(start_ns)}: record the session to see all of it"
            self.notify(text, severity="warning", markup=False)
        else:
            transport.seek(time_ns)

    @on(TuneEffectFound)
    def _describe_again(self) -> None:
        """Show a comparison that was computed meanwhile."""
        option = self.query_one(OptionList).highlighted_option
        if isinstance(option, ItemOption) and option.item.kind is EventKind.TUNE:
            self._describe(option.item)

    @on(OptionList.OptionHighlighted)
    def _show_detail(self, event: OptionList.OptionHighlighted) -> None:
        """Show the full text of the event, which the list cuts."""
        if isinstance(event.option, ItemOption):
            self._describe(event.option.item)
            self.query_one(SubjectCharts).inspect(event.option.item.time_ns)

    def _describe(self, event: Event) -> None:
        """Show the text of an event, and of a change of tunables what it did."""
        text, frame = Content(safe_text(event.text)), self.app_state.frame
        if event.kind is EventKind.TUNE and frame is not None:
            (effect,) = self._effects.of([event], frame.time_ns)
            text = Content.assemble(text, ("\nbefore/after: ", "dim"), effect_line(effect))
        self.query_one("#detail", TextLine).put(text)

    def _line(self, group: CauseGroup) -> Content:
        event, glyphs = group.first, glyphs_of(self)
        mark = glyphs.event_marks[event.kind]
        when = f" {day_and_clock(event.time_ns)}  "
        is_raised = event.kind is EventKind.ALERT and event.data.get("change") == "raised"
        style = "bold $error" if is_raised else "bold"
        return Content.assemble((when, "dim"), (f"{mark} {event.kind.value:<8}", style), self._fold(group), group.text)

    def _fold(self, group: CauseGroup) -> str:
        """Mark a group that can be opened."""
        if group.is_single:
            return ""
        return "- " if _name_of(group) in self._opened else "+ "


def _name_of(group: CauseGroup) -> tuple[int, str]:
    return group.first.time_ns, group.first.text
