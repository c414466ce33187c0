"""The dialog that selects a latency subject."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from collectors.latency.subjects import LatencySubject
from tui.theme.laid_out import Modal
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
