"""The answer of a sweep in words, wrapped to the width, with as many lines as it needs."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.strip import Strip

from tui.widgets.spans import Spanned

_INDENT = 4
_SHIFT = 16


class AnswerText(Spanned, can_focus=True, inherit_bindings=False):
    """Lines of text that scroll."""

    TAKES_ARROWS = True
    DEFAULT_CSS = """
    AnswerText { overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll(-1)", "Up", show=False, id="answer-up"),
        Binding("down,j", "scroll(1)", "Down", show=False, id="answer-down"),
        Binding("pageup", "scroll(-10)", "Page up", show=False, id="answer-page-up"),
        Binding("pagedown", "scroll(10)", "Page down", show=False, id="answer-page-down"),
        Binding("left", "shift(-1)", "Columns to the left", show=False, id="answer-left"),
        Binding("right", "shift(1)", "Columns to the right", show=False, id="answer-right"),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._text: Sequence[str] = ()
        self._tables: Sequence[str] = ()
        """Lines above the text that are not wrapped: what does not fit is reached sideways."""
        self._left = 0
        """Cells of the tables left of the edge."""
        self._lines: list[tuple[str, str]] = []
        """The text as it is wrapped."""

    def show(self, lines: Sequence[str], tables: Sequence[str] = ()) -> None:
        """Take new lines, and tables above them."""
        if (lines, tables) != (self._text, self._tables):
            self._text, self._tables = lines, tables
            self._lay_out()

    def action_shift(self, steps: int) -> None:
        """Move the tables sideways."""
        most = max((len(line) for line in self._tables), default=0) - self.area.width + 3
        self._left = max(0, min(self._left + _SHIFT * steps, most))
        self._lay_out()

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self.scroll_to(y=self.scroll_offset.y + lines, animate=False, force=True)

    def on_resize(self) -> None:
        """Wrap again."""
        self.forget_lines()
        self._lay_out()

    def _lay_out(self) -> None:
        self._lines = self._wrapped()
        self.set_line_count(len(self._lines))
        self.repaint()

    def _wrapped(self) -> list[tuple[str, str]]:
        """Lines that fit the width, with their styles: those that are not indented are heads."""
        width, lines = max(self.area.width - 1, 8), list[tuple[str, str]]()
        if self._tables:
            lines += [(f" {self._part_of(line, width)}", "text") for line in self._tables]
        for line in self._text:
            style = "text" if line.startswith(" ") else "mark"
            parts = textwrap.wrap(line, width, subsequent_indent=" " * _INDENT, break_long_words=True) or [""]
            lines += [(f" {part}", style) for part in parts]
        return lines

    def _part_of(self, line: str, width: int) -> str:
        """Cut a line of a table to the width; marks say on which side more follows."""
        end = self._left + width - 1
        part = line[self._left : end]
        if self._left and line[: self._left].strip():
            part = "<" + part[1:]
        return part.ljust(width - 1)[: width - 2] + ">" if len(line) > end else part

    def draw_lines(self) -> list[Strip]:
        """Draw the visible lines."""
        if not self._lines:
            return self.hint("nothing was measured yet")
        top = self.scroll_offset.y
        return self.filled(self.strip([line]) for line in self._lines[top : top + self.area.height])
