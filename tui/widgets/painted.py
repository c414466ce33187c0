"""Widgets that draw all their lines at once, in one page or several, and send only changed ones to the terminal."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from textual.color import Color
from textual.filter import LineFilter
from textual.geometry import Region, Size, Spacing
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.textual_internals.direct_refresh import DirectRefresh

NO_GUTTER = Spacing()
_NOTHING = Strip([], 0)


def replace_changed(drawn: list[Strip], fresh: list[Strip], width: int) -> list[Region]:
    """Update changed lines in `drawn` and return their regions, adjacent ones merged.

    Unchanged lines keep their strips, and with them Textual's caches.
    """
    regions: list[Region] = []
    for y, (before, after) in enumerate(zip(drawn, fresh, strict=True)):
        if before == after:
            continue
        drawn[y] = after
        if regions and regions[-1].bottom == y:
            regions[-1] = Region(0, regions[-1].y, width, regions[-1].height + 1)
        else:
            regions.append(Region(0, y, width, 1))
    return regions


class Painted(DirectRefresh):
    """Lines drawn from the latest data; the style shows the focus."""

    ALLOW_SELECT = False
    TAKES_ARROWS: ClassVar[bool] = False
    """Whether the arrow keys move the widget's cursor, also in a replay, where they would seek."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._drawn: list[Strip] | None = None
        self._drawn_size = Size(0, 0)
        self._filtered: list[tuple[Strip, Strip]] = []
        """How each line that was sent was drawn, and what the filters made of it."""
        self._ground: Color | None = None

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
        return self._drawn_line(self._all_lines(), y)

    def _all_lines(self) -> list[Strip]:
        """Give the lines of the last drawing; draws if there is none in this size."""
        area = self.area
        if self._drawn is None or self._drawn_size != area:
            self._drawn_size = area
            self._drawn = self.draw_lines()
        return self._drawn

    def _drawn_line(self, drawn: list[Strip], y: int) -> Strip:
        return drawn[y] if y < len(drawn) else Strip.blank(self._drawn_size.width)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Give lines as they are drawn: without a border and the like Textual would only copy them."""
        if self.styles.gutter != NO_GUTTER:
            return super().render_lines(crop)
        filters, lines = self.get_line_filters(), self._all_lines()
        return [
            strip if strip.cell_length == crop.width and not crop.x else strip.crop_extend(crop.x, crop.right, None)
            for strip in (self._filtered_line(self._drawn_line(lines, y), y, filters) for y in crop.line_range)
        ]

    def _filtered_line(self, drawn: Strip, y: int, filters: Sequence[LineFilter]) -> Strip:
        """Give a line of the last drawing after the filters: the same strip until it is drawn again."""
        if not filters:
            return drawn
        if y < len(self._filtered) and self._filtered[y][0] is drawn:
            return self._filtered[y][1]
        if self._ground is None:
            self._ground = self.background_colors[1]
        shown = drawn
        for each in filters:
            shown = shown.apply_filter(each, self._ground)
        missing = y + 1 - len(self._filtered)
        self._filtered += [(_NOTHING, _NOTHING)] * missing
        self._filtered[y] = drawn, shown
        return shown

    def on_focus(self) -> None:
        """Show the focus."""
        self._invalidate()

    def on_blur(self) -> None:
        """Show the loss of focus."""
        self._invalidate()

    def notify_style_update(self) -> None:
        """Drop lines drawn with another theme."""
        super().notify_style_update()
        self._ground, self._filtered = None, []
        self.invalidate_style()
        self.forget_lines()

    def forget_lines(self) -> None:
        """Draw all lines at the next request for one."""
        self._drawn = None

    def _invalidate(self) -> None:
        self.invalidate_style()
        self.forget_lines()
        self.refresh()


class Paged(Painted, ScrollView, inherit_bindings=False):
    """Draws visible lines only; each widget moves its own cursor, and the view follows."""

    @property
    def area(self) -> Size:
        """The widget without its scrollbar."""
        return self.scrollable_content_region.size

    def set_line_count(self, lines: int) -> None:
        """Take how many lines there are in all, in sight or not.

        All of the screen is laid out anew only if the scroll bar comes or goes: that takes longer than drawing them.
        """
        size = Size(0, lines)
        if size == self.virtual_size:
            return
        if (lines > self.container_size.height) != self.show_vertical_scrollbar:
            self.virtual_size = size
        else:
            self.take_virtual_size(size)

    def is_visible_line(self, line: int, height: int) -> bool:
        """Whether a line is among the `height` lines from the scroll position on."""
        return self.scroll_offset.y <= line < self.scroll_offset.y + height

    def scroll_to_line(self, line: int, height: int) -> None:
        """Scroll by as little as shows the line, where `height` lines can be seen; none while nothing is laid out."""
        if height > 0 and not self.is_visible_line(line, height):
            self.scroll_to(y=min(line, max(self.scroll_offset.y, line - height + 1)), animate=False, force=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Draw the lines that scroll into view."""
        self.forget_lines()
        super().watch_scroll_y(old_value, new_value)
