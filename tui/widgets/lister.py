"""A titled list of lines with a cursor, rebuilt only when its lines change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Literal, TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import Click
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.widgets.line import TextLine

Item = TypeVar("Item")


class Options(OptionList):
    """An option list that works where Textual's fails to find a line: with none visible, and after it got shorter."""

    async def _on_click(self, event: Click) -> None:
        """Ignore a click on a line that is no longer there: it was drawn before the list changed."""
        clicked = event.style.meta.get("option")
        if clicked is not None and clicked >= self.option_count:
            event.prevent_default()

    def _move_page(self, direction: Literal[-1, 1]) -> None:
        if self.scrollable_content_region:
            super()._move_page(direction)


class ItemOption(Option, Generic[Item]):
    """A line that carries what it shows: a click that comes when the list has changed selects what was clicked."""

    def __init__(self, prompt: Content, item: Item) -> None:
        super().__init__(prompt)
        self.item = item


class Lister(Vertical):
    """Title, column heading, lines; Enter on a line posts `OptionList.OptionSelected`."""

    DEFAULT_CSS = """
    Lister TextLine { text-style: bold; }
    Lister OptionList { height: 1fr; border: none; padding: 0; text-wrap: nowrap; text-overflow: ellipsis; }
    Lister OptionList { background: $background; scrollbar-size-vertical: 1; }
    """

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._lines: list[Content] = []

    def compose(self) -> ComposeResult:
        """Title and list."""
        yield TextLine(" ")
        yield Options(markup=False, compact=True)

    def put(self, title: Content | str, lines: Sequence[Content]) -> None:
        """Show these lines; the cursor stays on its line number."""
        self.query_one(TextLine).put(title)
        if len(lines) == len(self._lines) and all(map(Content.is_same, lines, self._lines)):
            return
        self._put_lines(lines)

    def _put_lines(self, lines: Sequence[Content]) -> None:
        """Change the lines that differ: a list that is cleared and filled again is laid out, with its screen, twice."""
        listing, before = self.query_one(OptionList), self._lines
        self._lines = list(lines)
        if not before or not lines:
            listing.clear_options()
            listing.add_options(Option(line) for line in lines)
            return
        for number, (old, new) in enumerate(zip(before, lines, strict=False)):
            if not old.is_same(new):
                listing.replace_option_prompt_at_index(number, new)
        listing.add_options(Option(line) for line in lines[len(before) :])
        for number in reversed(range(len(lines), len(before))):
            listing.remove_option_at_index(number)
