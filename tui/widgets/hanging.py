"""A page of lines with a heading each; wrapped text keeps its indent."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

LEAST_TEXT = 12
"""Text width below which an indent would waste the line."""


@dataclass(frozen=True, slots=True)
class Hanging:
    """One line; wrapped text continues `indent` cells from the left."""

    content: Content
    indent: int = 0


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


class HangingPage(Widget):
    """Lines; the widget is as high as they are."""

    DEFAULT_CSS = """
    HangingPage { height: auto; width: 1fr; }
    """

    def __init__(self, lines: Sequence[Hanging]) -> None:
        super().__init__(markup=False)
        self._lines = lines

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's signature
        """Count the lines at a width."""
        return len(self._wrapped(width))

    def render(self) -> Content:
        """Draw all lines at the current width."""
        return Content("\n").join(self._wrapped(self.size.width))

    def _wrapped(self, width: int) -> list[Content]:
        return [part for line in self._lines for part in wrapped(line, max(width, 1))]
