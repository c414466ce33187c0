"""A widget that draws all its lines at once and sends only changed ones."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from tui.widgets.lines import replace_changed


class Painted(Widget):
    """Lines drawn from the latest data; the style shows the focus."""

    ALLOW_SELECT = False
    TAKES_ARROWS: ClassVar[bool] = False
    """Whether the arrow keys move the widget's cursor, also in a replay, where they would seek."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._drawn: list[Strip] | None = None
        self._drawn_size = Size(0, 0)

    @property
    def area(self) -> Size:
        """The area to draw on."""
        return self.size

    @abstractmethod
    def draw_lines(self) -> list[Strip]:
        """Draw all lines, as many as the area is high."""

    @abstractmethod
    def invalidate_style(self) -> None:
        """Clear cached styles: theme or focus changed."""

    def repaint(self) -> None:
        """Redraw and send changed lines."""
        if self._drawn is None or self._drawn_size != self.area:
            self.forget_lines()
            self.refresh()
        elif changed := replace_changed(self._drawn, self.draw_lines(), self.area.width):
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        """One line of the last drawing; draws first if there is none."""
        if self._drawn is None or self._drawn_size != self.area:
            self._drawn_size = self.area
            self._drawn = self.draw_lines()
        return self._drawn[y] if y < len(self._drawn) else Strip.blank(self.area.width)

    def on_focus(self) -> None:
        """Show the focus."""
        self._invalidate()

    def on_blur(self) -> None:
        """Show the loss of focus."""
        self._invalidate()

    def notify_style_update(self) -> None:
        """Drop lines drawn with another theme."""
        super().notify_style_update()
        self.invalidate_style()
        self.forget_lines()

    def forget_lines(self) -> None:
        """Draw all lines at the next request for one."""
        self._drawn = None

    def _invalidate(self) -> None:
        self.invalidate_style()
        self.forget_lines()
        self.refresh()
