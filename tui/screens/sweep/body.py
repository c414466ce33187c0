"""What the bodies of the sweep screen share: one view or all of them, the points, and what is said of the study."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

from textual.containers import Vertical
from textual.message import Message
from textual.widget import Widget

from tui.screens.sweep.point_grid import PointGrid
from tui.screens.sweep.shown import ShownMeasurement
from tui.screens.sweep.study_words import StudyWords

State = TypeVar("State")


class AnswersChanged(Message):
    """What a study says was computed beside the screen."""


class SweepBody(Vertical, Generic[State]):
    """Shows one kind of study; it keeps which view is shown where there is no room for all."""

    PLAN: ClassVar[type]
    """Plans of the studies that it shows."""
    VIEWS: ClassVar[tuple[str, ...]]
    PREFIX: ClassVar[str] = ""
    """What the ids of the views begin with."""

    def __init__(self, widget_id: str) -> None:
        super().__init__(id=widget_id)
        self._view = self.VIEWS[0]
        self._offered = self.VIEWS
        """Views that have something to show."""

    @abstractmethod
    def show(self, state: State, shown: ShownMeasurement, *, is_large: bool) -> None:
        """Draw a state, beside what else was measured."""

    @abstractmethod
    def texts(self, state: State, width: int) -> tuple[str, str]:
        """Verdict, and the point under the cursor."""

    @abstractmethod
    def words(self, state: State) -> StudyWords:
        """Say how far the study is."""

    @abstractmethod
    def name_of(self, state: State, point: Any) -> str:  # noqa: ANN401 (of its kind)
        """Name a point."""

    @abstractmethod
    def chosen(self, state: State) -> tuple[object, ...]:
        """Return what the drawing depends on beside the state: what was chosen, and what was computed."""

    @abstractmethod
    def next_figure(self, state: State) -> None:
        """Draw the next figure."""

    @abstractmethod
    def next_curve(self, state: State) -> None:
        """Move to the next curve."""

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
