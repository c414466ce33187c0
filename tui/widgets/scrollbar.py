"""A scrollbar for terminals that have no block characters."""

from __future__ import annotations

from typing import ClassVar

from textual.scrollbar import ScrollBarRender


class PlainScrollBarRender(ScrollBarRender):
    """Draws whole cells only, as reversed spaces, where Textual would smooth the ends with eighths of a block."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8
