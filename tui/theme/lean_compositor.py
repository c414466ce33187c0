"""Partial updates that render only the widgets and lines that changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from textual._compositor import ChopsUpdate, Compositor
from textual.geometry import Region
from textual.strip import Strip


class LeanCompositor(Compositor):
    """Renders what overlaps a changed region.

    Textual renders every line of every widget within the rectangle around all changes, which mostly is the whole
    screen, and drops the lines that did not change: half of the CPU time of a key.
    """

    _changed: tuple[Region, ...] = ()
    """While a partial update is rendered, what changed."""

    def render_partial_update(self) -> ChopsUpdate | None:
        """Render the changed regions."""
        self._changed = tuple(self._dirty_regions)
        try:
            return super().render_partial_update()
        finally:
            self._changed = ()

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
