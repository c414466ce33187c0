"""Small apps and figures that the widget tests share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from textual.app import ComposeResult
from textual.widget import Widget

from collectors.model import FrameTable, Rows
from tui.text.glyphs import UNICODE, Glyphs
from tui.textual_internals.themed_app import ThemedApp
from tui.theming import DEFAULT_THEME

NO_FOLDER = Path("/nonexistent")
"""No themes of whoever runs the tests."""


class OneWidget(ThemedApp[None]):
    """An app that shows one widget and remembers the messages that came from it."""

    def __init__(self, widget: Widget, theme: str = DEFAULT_THEME, glyphs: Glyphs = UNICODE) -> None:
        super().__init__(glyphs=glyphs, theme_folder=NO_FOLDER)
        self.theme = theme
        self.widget = widget
        self.heard: list[object] = []

    def compose(self) -> ComposeResult:
        yield self.widget


def text_of(widget: Widget) -> list[str]:
    """What the lines of a mounted widget say."""
    return [widget.render_line(y).text for y in range(widget.size.height)]


def disks(
    names: Sequence[str], tiers: dict[str, Sequence[int]] | None = None, **columns: Sequence[float]
) -> FrameTable:
    """A frame table of disks whose keys are `key of NAME`."""
    return FrameTable(
        Rows(tuple(f"key of {name}" for name in names), tuple(names)),
        {field_id: np.array(values, dtype=np.float64) for field_id, values in columns.items()},
        {field_id: np.array(codes, dtype=np.uint8) for field_id, codes in (tiers or {}).items()},
    )


def after(table: FrameTable, **columns: Sequence[float]) -> FrameTable:
    """The next frame of the same rows with some columns replaced."""
    fresh = {field_id: np.array(values, dtype=np.float64) for field_id, values in columns.items()}
    return FrameTable(table.rows, {**table.columns, **fresh}, table.tiers)
