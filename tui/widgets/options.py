"""Textual's list of options, in windows of any size."""

from __future__ import annotations

from typing import Literal

from textual.widgets import OptionList


class Options(OptionList):
    """A list that bears a window which shows none of its lines: by itself it fails to find the one under the cursor."""

    def _move_page(self, direction: Literal[-1, 1]) -> None:
        if self.scrollable_content_region:
            super()._move_page(direction)
