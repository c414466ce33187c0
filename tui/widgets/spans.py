"""Widgets whose lines are runs of text in named styles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeAlias

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.text.safe import fit
from tui.widgets.painted import Paged

Spans: TypeAlias = Sequence[tuple[str, str]]
"""Text and style, one after another."""

LEVELS = 8
PARTS = ("text", "muted", "head", "sorted", "axis", "mark", "now", "failed", "curve", "peak", "faint", "empty")


class Spanned(Paged, inherit_bindings=False):
    """Draws lines of spans; the line under the cursor has a background of its own."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"sweep--{part}" for part in PARTS),
        *(f"sweep--level-{level}" for level in range(1, LEVELS + 1)),
        "sweep--cursor",
    }

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._styles: dict[str, Style] = {}

    def strip(self, spans: Spans, *, at_cursor: bool = False) -> Strip:
        """Make a line of the width of the widget."""
        style_for = self._style_at_cursor if at_cursor else self.style_of
        segments = [Segment(text, style_for(style)) for text, style in spans if text]
        return Strip(segments).adjust_cell_length(self.area.width, style_for("text"))

    def _style_at_cursor(self, part: str) -> Style:
        return self.style_of(part) + self.style_of("cursor")

    def filled(self, strips: Iterable[Strip]) -> list[Strip]:
        """Cut or fill the lines to the height."""
        height = self.area.height
        return (list(strips)[:height] + [self.strip(())] * height)[:height]

    def hint(self, text: str) -> list[Strip]:
        """One line of text, where there is nothing to draw."""
        return self.filled([self.strip([(fit(f" {text}", self.area.width), "empty")])])

    def style_of(self, part: str) -> Style:
        """Style of a part, looked up once per theme and focus."""
        style = self._styles.get(part)
        if style is None:
            style = self.get_component_rich_style(f"sweep--{part}", partial=part == "cursor")
            self._styles[part] = style
        return style

    def invalidate_style(self) -> None:
        """Clear cached styles: theme or focus changed."""
        self._styles = {}

    def on_resize(self) -> None:
        """Draw in the new size."""
        self.repaint()
