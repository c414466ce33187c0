"""The dialog that selects one of many lines by typing a part of it: commands, themes, latency subjects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from msgspec import Struct
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from tui.textual_internals.laid_out import Modal
from tui.widgets.line import TextLine
from tui.widgets.line_list import LineList

MOST_LISTED = 200
"""Largest number of listed lines; typing narrows the list."""
NOTE_COLUMN = 50
GROUP_WIDTH, KEY_WIDTH = 10, 9
PAGE_LINES = 10

Value = TypeVar("Value")


class ChooserLine(Struct, Generic[Value], frozen=True):
    """One line of the list."""

    title: str
    value: Value
    note: str = ""
    """Drawn dimmed behind the title, and before it in a list of groups; typing finds it too."""
    group: str = ""
    """Heading at the first of the listed lines that share it."""

    def holds(self, words: Sequence[str]) -> bool:
        """Whether each word is a part of the line or its group."""
        text = f"{self.group} {self.title} {self.note}".lower()
        return all(word in text for word in words)


class _Listed(Struct, Generic[Value], frozen=True):
    """A line that typing left, and whether it is the first of its group."""

    choice: ChooserLine[Value]
    starts_group: bool

    def line(self) -> Content:
        """Draw the line."""
        title, note, group = self.choice.title, self.choice.note, self.choice.group
        if group:
            heading = (group if self.starts_group else "").ljust(GROUP_WIDTH)
            note = note if len(note) <= KEY_WIDTH else note.split()[0]
            return Content.assemble((heading, "bold"), (note.ljust(KEY_WIDTH), "bold $accent"), " ", title)
        if not note:
            return Content(title)
        return Content.assemble(title.ljust(NOTE_COLUMN), " ", (note, "dim"))


class Chooser(Modal[Value | None], Generic[Value]):
    """A list filtered by typing; Enter selects the line under the cursor, Esc cancels.

    It can be shown again: an app that installs it pays for its widgets once.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Leave", show=False),
        Binding("up", "move(-1)", "Up", show=False, priority=True),
        Binding("down", "move(1)", "Down", show=False, priority=True),
        Binding("pageup", f"move(-{PAGE_LINES})", "Page up", show=False, priority=True),
        Binding("pagedown", f"move({PAGE_LINES})", "Page down", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    Chooser { align: center middle; }
    Chooser Vertical {
        width: 72; max-width: 100%; height: 20; max-height: 100%;
        border: round $accent; padding: 0 1; background: $surface;
    }
    Chooser.-grouped Vertical { width: 84; height: 22; }
    Chooser LineList { height: 1fr; }
    """

    def __init__(
        self,
        title: str,
        choices: Sequence[ChooserLine[Value]] = (),
        *,
        present: Value | None = None,
        verb: str = "show",
        classes: str | None = None,
    ) -> None:
        super().__init__(classes=classes)
        self._title = title
        self._choices = choices
        self._present = present
        self._verb = verb

    def offer(self, choices: Sequence[ChooserLine[Value]]) -> None:
        """Replace the lines; call this before it is shown again."""
        self._choices = choices

    def compose(self) -> ComposeResult:
        """Filter, list, count."""
        box = Vertical()
        box.border_title = self._title
        with box:
            yield Input(placeholder="type part of a name", compact=True)
            listing = LineList[_Listed[Value]]()
            listing.can_focus = False  # What is typed always goes to the filter.
            yield listing
            yield TextLine(" ")

    def on_screen_resume(self) -> None:
        """List all, as before anything was typed."""
        with self.prevent(Input.Changed):
            self.query_one(Input).value = ""
        self._list("")

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        self._list(event.value)

    def _list(self, typed: str) -> None:
        words = typed.lower().split()
        found = [choice for choice in self._choices if choice.holds(words)]
        found.sort(key=lambda choice: not choice.title.lower().startswith(typed.strip().lower()))
        chosen = found[:MOST_LISTED]
        groups = [None, *(choice.group for choice in chosen)]
        listed = [_Listed(each, each.group != before) for each, before in zip(chosen, groups, strict=False)]
        present = next((at for at, choice in enumerate(chosen) if choice.value == self._present), 0)
        self._listing.put(listed, _Listed.line, cursor=present)
        rest = f", the first {MOST_LISTED} listed: type more" if len(found) > MOST_LISTED else ""
        count = f"{len(found)} of {len(self._choices)}{rest}"
        self.query_one(TextLine).put(f"{count}   Enter: {self._verb}   Esc: cancel")

    @property
    def _listing(self) -> LineList[_Listed[Value]]:
        return self.query_one(LineList)

    def action_move(self, lines: int) -> None:
        """Move the cursor of the list while typing."""
        self._listing.move_to((self._listing.cursor or 0) + lines)

    @on(Input.Submitted)
    def _take_highlighted(self) -> None:
        listed = self._listing.chosen
        self.dismiss(None if listed is None else listed.choice.value)

    @on(LineList.Chosen)
    def _take_clicked(self, event: LineList.Chosen) -> None:
        if isinstance(event.item, _Listed):
            self.dismiss(event.item.choice.value)
