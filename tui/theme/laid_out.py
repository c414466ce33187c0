"""Screens that are laid out and painted once for a new size, however much depends on it."""

from __future__ import annotations

from typing import Generic

from textual.geometry import Size
from textual.screen import Screen, ScreenResultType


class LaidOutOnce(Screen[ScreenResultType], Generic[ScreenResultType]):
    """A screen that waits for the next picture with the layout of a new size.

    Textual lays a screen out at once for a new size, once more as that layout tells the screen its size, and again for
    the classes that come with it; each time all of it is painted.
    """

    def _screen_resized(self, size: Size) -> None:
        """Have the screen laid out with the next picture, unless it has the size already."""
        if self.stack_updates and self.is_attached and size != self.outer_size:
            self._layout_required = True
            self.check_idle()

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        """Lay out in the size that the terminal has now; all of it where that is new."""
        wanted = self.app.size if size is None else size
        is_new = wanted != self.outer_size
        super()._refresh_layout(wanted, scroll and not is_new)
        if is_new:
            self._repaint_required = False  # All of it has just been painted.
