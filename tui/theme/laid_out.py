"""Screens that are laid out and painted once per resize, and dialogs that close once."""

from __future__ import annotations

import inspect
from typing import Generic

from textual import work
from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette
from textual.geometry import Size
from textual.screen import ModalScreen, Screen, ScreenResultType


class LaidOutOnce(Screen[ScreenResultType], Generic[ScreenResultType]):
    """A screen that defers the layout of a new size to the next frame.

    Textual lays a screen out at once, again when the layout sets the screen's size, and again for the size classes;
    each time all of it is painted.
    """

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

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close this dialog if it is still the topmost screen."""
        return super().dismiss(result) if self.is_active else AwaitComplete()


class Palette(CommandPalette, LaidOutOnce[None]):
    """Textual's command palette that closes once, and works in a window that shows none of its lines.

    Its search runs beside its other messages: it may begin, or show what it found, when the list is removed already.
    """

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close it if it is still the topmost screen."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        if self._has_list:
            await _gather(self, search_value)

    def _watch__list_visible(self) -> None:
        if self._has_list:
            super()._watch__list_visible()

    async def _watch__show_busy(self) -> None:
        if self._has_list:
            await super()._watch__show_busy()

    def _action_command_list(self, action: str) -> None:
        if self._has_list and self.query_one(CommandList).scrollable_content_region:
            super()._action_command_list(action)

    @property
    def _has_list(self) -> bool:
        return bool(self.query(CommandList))


_gather = inspect.unwrap(CommandPalette._gather_commands)
"""The search itself; the attribute of the class starts it as a worker, which would be a second one."""
