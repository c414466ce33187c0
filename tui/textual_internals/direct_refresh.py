"""Widgets that the screen paints with its next frame, without messages for each of them."""

from __future__ import annotations

from typing import Self

from textual.geometry import Region, Size
from textual.style import Style
from textual.widget import Widget


class DirectRefresh(Widget):
    """Tells the screen at once what to paint.

    Textual sends each refreshed widget a message, and that one the screen another: for the few lines that most changes
    are, this takes longer than drawing them.
    """

    @property
    def opacity(self) -> float:
        """Nothing of ours is transparent; asking all nodes above would take longer than drawing a line."""
        return 1.0

    def take_changes(self) -> bool:
        """Whether anything is to be painted since this was last asked; who asks paints it."""
        has_changed = bool(self._dirty_regions)
        self._dirty_regions.clear()
        return has_changed

    def parsed_style(self, style: str | Style) -> Style:
        """Parse a style as it is written in a text of this widget."""
        return self._get_style(style)

    def take_virtual_size(self, size: Size) -> None:
        """Take how much can be scrolled, where that neither shows nor hides a scroll bar: nothing is laid out anew."""
        self.set_reactive(Widget.virtual_size, size)
        self._scroll_update(size)

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Paint these regions of the widget, or all of it, with the next frame of its screen."""
        if layout or recompose or not repaint or not (self.is_mounted and self.is_attached):
            return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
        self._layout_cache.clear()
        self.clear_cached_dimensions()
        self._set_dirty(*regions)
        screen = self.screen
        if self.display and screen in screen._compositor:
            screen._dirty_widgets.add(self)
            screen.check_idle()
        return self
