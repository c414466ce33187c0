"""What the bodies of the sweep screen share: one view or all of them, and the points."""

from __future__ import annotations

from typing import Any, ClassVar

from textual.containers import Vertical
from textual.widget import Widget

from tui.widgets.sweep.point_grid import PointGrid


class SweepBody(Vertical):
    """Keeps which view is shown where there is no room for all."""

    VIEWS: ClassVar[tuple[str, ...]]
    PREFIX: ClassVar[str] = ""
    """What the ids of the views begin with."""

    def __init__(self, widget_id: str) -> None:
        super().__init__(id=widget_id)
        self._view = self.VIEWS[0]
        self._offered = self.VIEWS
        """Views that have something to show."""

    def view_widget(self, view: str) -> Widget:
        """Return the widget that shows a view."""
        return self.query_one(f"#{self.PREFIX}{view}", Widget)

    def next_view(self) -> None:
        """Show the next view."""
        position = self._offered.index(self._view) if self._view in self._offered else -1
        self._view = self._offered[(position + 1) % len(self._offered)]
        widget = self.view_widget(self._view)
        widget.display = True
        if isinstance(widget.parent, Widget):
            widget.parent.display = True
        if widget.can_focus:
            widget.focus()

    @property
    def grid(self) -> PointGrid[Any]:
        """The points."""
        return self.query_one(PointGrid)
