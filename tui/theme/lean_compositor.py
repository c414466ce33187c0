"""Partial updates that render only the widgets and lines that changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import cast

from textual._compositor import ChopsUpdate, Compositor
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui.terminal.cells import Piece
from tui.terminal.frame_sequences import runs_of
from tui.terminal.frame_update import LinesUpdate

Places = Mapping[Widget, tuple[Region, Region]]
"""Region and clip of each visible widget, from front to back."""
_TOP_LEFT = attrgetter("y", "x")


class LeanCompositor(Compositor):
    """Renders what overlaps a changed region.

    Textual renders every line of every widget within the rectangle around all changes, which mostly is the whole
    screen, cuts each of them where any widget begins, and drops the lines that did not change: most of the CPU time of
    a key. Here the lines of a widget that nothing covers go to the terminal as they are.
    """

    _changed: tuple[Region, ...] = ()
    """While a partial update is rendered, what changed."""
    _own_changes: dict[Widget, list[Region]]
    """Regions that changed since the last update, by their widget."""
    _places: Places | None = None
    """The layout to which the next belongs."""
    _in_front: dict[Widget, Region | None]
    """What shows of a widget, if it is one rectangle."""

    def __init__(self) -> None:
        super().__init__()
        self._own_changes = {}
        self._in_front = {}

    def update_widgets(self, widgets: set[Widget]) -> None:
        """Note the regions of widgets to be painted again, by widget."""
        if not self._dirty_regions:
            self._own_changes = {}
        for widget in self.visible_widgets.keys() & widgets:
            region, clip = self.visible_widgets[widget]
            found = (clip.intersection(part.translate(region.offset)) for part in widget._repaint_regions)
            self._own_changes.setdefault(widget, []).extend(part for part in found if part)
        super().update_widgets(widgets)

    def render_partial_update(self) -> ChopsUpdate | None:
        """Render the changed regions."""
        own, self._own_changes = self._own_changes, {}
        self._changed = tuple(self._dirty_regions)
        known = {part for parts in own.values() for part in parts}
        try:
            if known.issuperset(self._changed) and (pieces := self._pieces(own)) is not None:
                self._dirty_regions.clear()
                return cast("ChopsUpdate", LinesUpdate(pieces))  # Textual asks it for its sequences only.
            return super().render_partial_update()
        finally:
            self._changed = ()

    def _pieces(self, changes: Mapping[Widget, list[Region]]) -> list[Piece] | None:
        """Lines of the widgets that changed; None if a part of one is covered."""
        places = self.visible_widgets
        # All are looked up before one is rendered: a widget that asks for its place then may have the screen arranged
        # anew, without those that have left it since.
        shown = {widget: self._shown(widget, places) for widget in changes}
        pieces: list[Piece] = []
        for widget, parts in changes.items():
            if (seen := shown[widget]) is None:
                return None
            pieces += _lines(widget, seen, places[widget][0], parts)
        pieces.sort(key=_TOP_LEFT)
        return pieces

    def _shown(self, widget: Widget, places: Places) -> Region | None:
        """Look up what shows of a widget, once per layout; None if it is not in this one."""
        if self._places is not places:
            self._places, self._in_front = places, {}
        if widget not in self._in_front:
            self._in_front[widget] = shown_of(widget, places, self.size.region) if widget in places else None
        return self._in_front[widget]

    def _get_renders(self, crop: Region | None = None) -> Iterable[tuple[Region, Region, list[Strip]]]:
        return self._changed_renders() if self._changed else super()._get_renders(crop)

    def _changed_renders(self) -> Iterator[tuple[Region, Region, list[Strip]]]:
        """Yield the region of each widget, the lines of it that are rendered, and their strips."""
        screen = self.size.region
        for widget, (region, clip) in self.visible_widgets.items():
            shown = region.intersection(clip).intersection(screen)
            changed = [part for each in self._changed if (part := each.intersection(shown))]
            if not changed:
                continue
            top, bottom = min(part.y for part in changed), max(part.bottom for part in changed)
            lines = Region(shown.x, top, shown.width, bottom - top)
            yield region, lines, widget.render_lines(lines.translate((-region.x, -region.y)))


def shown_of(widget: Widget, places: Places, screen: Region) -> Region | None:
    """Return what shows of a widget if that is one rectangle: all of it, or all but a scroll bar at its right."""
    region, clip = places[widget]
    shown = region.intersection(clip).intersection(screen)
    for other, (other_region, other_clip) in places.items():
        if other is widget:
            return shown
        cover = other_region.intersection(other_clip).intersection(shown)
        if not cover:
            continue
        if cover.height < shown.height or cover.right < shown.right:
            return None
        shown = Region(shown.x, shown.y, cover.x - shown.x, shown.height)
    return None


def _lines(widget: Widget, shown: Region, region: Region, parts: Iterable[Region]) -> Iterator[Piece]:
    """Yield the lines of a widget that changed, as far as they show."""
    wanted = sorted({y for part in parts for y in part.line_range if shown.y <= y < shown.bottom})
    for top, bottom in runs_of(wanted):
        lines = Region(shown.x - region.x, top - region.y, shown.width, bottom - top)
        for y, strip in enumerate(widget.render_lines(lines), top):
            yield Piece(shown.x, y, strip)
