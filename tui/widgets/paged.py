"""A painted widget with more lines than there is room for."""

from __future__ import annotations

from textual.geometry import Size
from textual.scroll_view import ScrollView

from tui.widgets.painted import Painted


class Paged(Painted, ScrollView, inherit_bindings=False):
    """Draws visible lines only; each widget moves its own cursor, and the view follows."""

    @property
    def area(self) -> Size:
        """The widget without its scrollbar."""
        return self.scrollable_content_region.size

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Draw the lines that scroll into view."""
        self.forget_lines()
        super().watch_scroll_y(old_value, new_value)
