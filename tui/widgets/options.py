"""Textual's option list for windows of any size."""

from __future__ import annotations

from typing import Literal

from textual.widgets import OptionList


class Options(OptionList):
    """An option list that works with no visible line, where Textual's fails to find the one under the cursor."""

    def _move_page(self, direction: Literal[-1, 1]) -> None:
        if self.scrollable_content_region:
            super()._move_page(direction)
