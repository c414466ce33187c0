"""The answer of a sweep in words, wrapped to the width, with as many lines as it needs."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.strip import Strip

from tui.widgets.sweep.spans import Spanned

_INDENT = 4


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
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._text: Sequence[str] = ()
        self._lines: list[tuple[str, str]] = []
        """The text as it is wrapped."""

    def show(self, lines: Sequence[str]) -> None:
        """Take new lines."""
        if lines != self._text:
            self._text = lines
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
        height = len(self._lines)
        if self.virtual_size.height != height:
            self.virtual_size = Size(0, height)
        self.repaint()

    def _wrapped(self) -> list[tuple[str, str]]:
        """Lines that fit the width, with their styles: those that are not indented are heads."""
        width, lines = max(self.area.width - 1, 8), list[tuple[str, str]]()
        for line in self._text:
            style = "text" if line.startswith(" ") else "mark"
            parts = textwrap.wrap(line, width, subsequent_indent=" " * _INDENT, break_long_words=True) or [""]
            lines += [(f" {part}", style) for part in parts]
        return lines

    def draw_lines(self) -> list[Strip]:
        """Draw the visible lines."""
        if not self._text:
            return self.hint("nothing was measured yet")
        top = self.scroll_offset.y
        return self.filled(self.strip([line]) for line in self._lines[top : top + self.area.height])
