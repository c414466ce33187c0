"""Screens that are laid out and painted once per resize, and dialogs that close once."""

from __future__ import annotations

from typing import Generic

from textual.await_complete import AwaitComplete
from textual.events import ScreenResume
from textual.geometry import Size
from textual.screen import ModalScreen, Screen, ScreenResultType

from tui.textual_internals.lean_compositor import LeanCompositor
from tui.textual_internals.sheets import ThemeSheets


class LaidOutOnce(Screen[ScreenResultType], Generic[ScreenResultType]):
    """A screen that defers the layout of a new size to the next frame.

    Textual lays a screen out at once, again when the layout sets the screen's size, and again for the size classes;
    each time all of it is painted.
    """

    def __init__(self, name: str | None = None, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(name, id, classes)
        self._compositor = LeanCompositor()

    def take_styles_for_new(self) -> None:
        """Spare it a pass over its styles: its widgets are styled when they are made, none has an earlier theme."""
        self._css_update_count = self.app._css_update_count

    _styled_in: int | None = None
    """Generation of the style sheets at the last pass over all widgets."""

    def _on_screen_resume(self, event: ScreenResume) -> None:
        """Spare a screen that is shown again the pass over its styles, unless the style sheets changed meanwhile."""
        sheets = self.app.stylesheet
        if isinstance(sheets, ThemeSheets):
            event.refresh_styles = event.refresh_styles and self._styled_in != sheets.generation
            self._styled_in = sheets.generation

    def _screen_resized(self, size: Size) -> None:
        """Request a layout with the next frame, unless the size is unchanged."""
        if self.stack_updates and self.is_attached and size != self.outer_size:
            self._layout_required = True
            self.check_idle()

    def _refresh_layout(self, size: Size | None = None, scroll: bool = False) -> None:
        """Lay out in the terminal's current size; completely if it changed."""
        wanted = self.app.size if size is None else size
        is_new = wanted != self.outer_size
        super()._refresh_layout(wanted, scroll and not is_new)
        if is_new:
            self._repaint_required = False  # It has just been painted completely.


class Modal(ModalScreen[ScreenResultType], LaidOutOnce[ScreenResultType], Generic[ScreenResultType]):
    """A dialog.

    Keys pressed while it closes still reach it: a second Escape would close the screen below, or end the app.
    """

    @property
    def is_open(self) -> bool:
        """Whether it has its widgets: once it was left they go one by one, while answers of threads still reach it."""
        return self.is_mounted and self in self.app.screen_stack

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key may do something: not before the widgets of the dialog are there, nor while they go."""
        return super().check_action(action, parameters) if self.is_mounted and self.is_active else False

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close this dialog if it is still the topmost screen."""
        return super().dismiss(result) if self.is_active else AwaitComplete()
