"""A page of lines with hanging indent, in which words can be found."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip
from textual.visual import Visual
from textual.widget import Widget

from tui.screens.help.sections import Hanging

LEAST_TEXT = 12
"""Text width below which an indent would waste the line."""


def wrapped(line: Hanging, width: int) -> Iterator[Content]:
    """Wrap a line to a width; only words longer than a line are cut."""
    plain, indent = line.content.plain, line.indent if width - line.indent >= LEAST_TEXT else 0
    if len(plain) <= width or not plain[indent:].strip():
        yield line.content
        return
    position, head = indent, line.content[:indent]
    for piece in textwrap.wrap(plain[indent:], max(width - indent, 1), replace_whitespace=False):
        start = plain.index(piece, position)
        position = start + len(piece)
        yield head + line.content[start:position]
        head = Content(" " * indent)


def find_lines(lines: Sequence[str], words: str) -> list[int]:
    """Find the lines that contain each of the words, whatever their case."""
    wanted = words.casefold().split()
    if not wanted:
        return []
    return [number for number, line in enumerate(lines) if all(word in line.casefold() for word in wanted)]


def next_match(found: Sequence[int], present: int, direction: int) -> int | None:
    """Return the next match after a line, or before it if `direction` is negative; from the end on from the start."""
    if not found:
        return None
    if direction > 0:
        return next((line for line in found if line > present), found[0])
    return next((line for line in reversed(found) if line < present), found[-1])


class HangingPage(Widget):
    """Lines; the widget is as high as they are, and only those in view are drawn."""

    DEFAULT_CSS = """
    HangingPage { height: auto; width: 1fr; }
    """

    def __init__(self, lines: Sequence[Hanging]) -> None:
        super().__init__(markup=False)
        self._lines = lines
        self._plain = [line.content.plain for line in lines]
        self._words = ""
        self._present: int | None = None
        self._width = 0
        self._wrapped: list[Content] = []
        self._tops: list[int] = []

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's signature
        """Count the lines at a width."""
        return len(self.lines_at(width))

    def render_line(self, y: int) -> Strip:
        """Draw one line at the current width."""
        lines = self.lines_at(self.size.width)
        if y >= len(lines):
            return Strip.blank(self.size.width, self.rich_style)
        (strip,) = Visual.to_strips(self, lines[y], self.size.width, 1, self.visual_style)
        return strip

    def lines_at(self, width: int) -> list[Content]:
        """Return all lines, wrapped to a width."""
        if width != self._width:
            self._width, self._wrapped, self._tops = width, [], []
            for number, line in enumerate(self._lines):
                self._tops.append(len(self._wrapped))
                self._wrapped += wrapped(self._marked(number, line), max(width, 1))
        return self._wrapped

    def find(self, words: str) -> list[int]:
        """Mark the lines that contain each of the words, and return their numbers."""
        self._words, self._present = words, None
        self._draw_again()
        return find_lines(self._plain, words)

    def show_match(self, number: int) -> None:
        """Mark a line as the present match."""
        self._present = number
        self._draw_again()

    def top_of(self, number: int) -> int:
        """Row of a line, at the present width."""
        self.lines_at(self.size.width)
        return self._tops[number]

    def _marked(self, number: int, line: Hanging) -> Hanging:
        """Mark the words where all of them are in the line."""
        plain, content = self._plain[number], line.content
        if not find_lines([plain], self._words):
            return line
        style = "reverse bold" if number == self._present else "underline bold $match"
        for word in self._words.split():
            for found in re.finditer(re.escape(word), plain, re.IGNORECASE):
                content = content.stylize(style, *found.span())
        return Hanging(content, line.indent)

    def _draw_again(self) -> None:
        self._width = 0
        self.refresh()
