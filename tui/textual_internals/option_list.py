"""Textual's option list, without its failures."""

from __future__ import annotations

from typing import Literal

from textual.events import Click
from textual.widgets import OptionList


class Options(OptionList):
    """An option list that works where Textual's fails to find a line: with none visible, and after it got shorter."""

    async def _on_click(self, event: Click) -> None:
        """Ignore a click on a line that is no longer there: it was drawn before the list changed."""
        clicked = event.style.meta.get("option")
        if clicked is not None and clicked >= self.option_count:
            event.prevent_default()

    def _move_page(self, direction: Literal[-1, 1]) -> None:
        if self.scrollable_content_region:
            super()._move_page(direction)
