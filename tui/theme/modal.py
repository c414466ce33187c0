"""Dialogs that close once, even if a key was pressed twice or the window was too small."""

from __future__ import annotations

from typing import Generic

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, ScreenResultType

from tui.theme.laid_out import LaidOutOnce


class Modal(ModalScreen[ScreenResultType], LaidOutOnce[ScreenResultType], Generic[ScreenResultType]):
    """A dialog.

    Keys pressed while it closes still reach it: a second Escape would close the screen below, or end the app.
    """

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close this dialog if it is still the topmost screen."""
        return super().dismiss(result) if self.is_active else AwaitComplete()
