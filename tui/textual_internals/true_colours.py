"""Textual's filter that gives the terminal's own colours fixed ones, without its cost for lines that have none."""

from __future__ import annotations

from functools import lru_cache

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual import app
from textual.color import Color
from textual.filter import ANSIToTruecolor


class TrueColours(ANSIToTruecolor):
    """Leaves lines alone that have fixed colours only: Textual makes each of their parts again."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Replace the terminal's own colours, and faint text by a blend with its ground."""
        # A line has few styles, each many times as the same object; comparing whole styles would cost the most.
        styles = {id(style): style for _, style, _ in segments}
        if all(map(_is_fixed, styles.values())):
            return segments
        return super().apply(segments, background)


@lru_cache(maxsize=4096)
def _is_fixed(style: Style | None) -> bool:
    """Whether Textual's filter would leave a style as it is."""
    if style is None:
        return True
    blends = bool(style.dim) and style.color is not None
    return not blends and _is_true(style.color) and _is_true(style.bgcolor)


def _is_true(colour: RichColor | None) -> bool:
    return colour is None or colour.triplet is not None


def use_true_colours() -> None:
    """Let apps made from now on filter their lines with it."""
    vars(app)["ANSIToTruecolor"] = TrueColours
