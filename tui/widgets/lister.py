"""Lists of lines with a cursor: of a dialog, and below a title."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets.option_list import Option

from tui.widgets.line import TextLine
from tui.widgets.line_list import LineList

Item = TypeVar("Item")


class ItemOption(Option, Generic[Item]):
    """A line that carries what it shows: a click that comes when the list has changed selects what was clicked."""

    def __init__(self, prompt: Content, item: Item) -> None:
        super().__init__(prompt)
        self.item = item


class Lister(Vertical):
    """Title or column heading, and a list of lines; Enter on a line posts `LineList.Chosen`."""

    DEFAULT_CSS = """
    Lister TextLine { text-style: bold; }
    Lister LineList { height: 1fr; background: $background; }
    """

    def compose(self) -> ComposeResult:
        """Title and list."""
        yield TextLine(" ")
        yield LineList()

    def put(self, title: Content | str, items: Sequence[Item], line_of: Callable[[Item], Content]) -> None:
        """Show these items by their lines; the cursor stays on its line number."""
        self.query_one(TextLine).put(title)
        self.query_one(LineList).put(items, line_of)
