"""Dialogs that close once, even if a key was pressed twice or the window was too small."""

from __future__ import annotations

import inspect
from typing import Generic

from textual import work
from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette
from textual.screen import ModalScreen, ScreenResultType

from tui.theme.laid_out import LaidOutOnce


class Modal(ModalScreen[ScreenResultType], LaidOutOnce[ScreenResultType], Generic[ScreenResultType]):
    """A dialog.

    Keys pressed while it closes still reach it: a second Escape would close the screen below, or end the app.
    """

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close this dialog if it is still the topmost screen."""
        return super().dismiss(result) if self.is_active else AwaitComplete()


class Palette(CommandPalette, LaidOutOnce[None]):
    """Textual's command palette that closes once, and works in a window that shows none of its lines."""

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Close it if it is still the topmost screen."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        """Search as the base class does; not if its list is gone, because a typed key was handled after the end."""
        if self.query(CommandList):
            await _gather(self, search_value)

    def _action_command_list(self, action: str) -> None:
        if any(found.scrollable_content_region for found in self.query(CommandList)):
            super()._action_command_list(action)


_gather = inspect.unwrap(CommandPalette._gather_commands)
"""The search itself; the attribute of the class starts it as a worker, which would be a second one."""
