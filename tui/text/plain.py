"""Text and lines in plain ASCII, of the same width."""

from __future__ import annotations

import functools
import unicodedata

from rich.cells import cell_len, get_character_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_ALIKE = {
    "|": "▏▎▍▌▋▊▉▐▕‖",
    "-": "▔▀▁▂▃▄",
    "+": "…±",
    "#": "█▓▒▅▆▇■▪◼",
    ".": "░·•",
    ">": "→▶►▷▸▹≥",
    "<": "←◀◄◁◂◃≤",
    "^": "↑▲△▴▵",
    "v": "↓▼▽▾▿",
    "o": "●○◯◉◌⭘°",
    "*": "◆◇★☆",
    "x": "\N{MULTIPLICATION SIGN}✕✖",
    "u": "µμ",
    "!": "≠",
    "Y": "✓✔",
    "N": "¶",
}
_ASCII = {ord(mark): plain for plain, marks in _ALIKE.items() for mark in marks}
_LARGEST = 127


class PlainFilter(LineFilter):
    """Replaces every other character with ASCII characters of the same width.

    It filters each line sent to the terminal, including Textual's own widgets and device names.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 - Textual's signature
        """Replace what is not ASCII; every segment keeps its width."""
        return [
            segment if segment.text.isascii() else Segment(plain_text(segment.text), segment.style, segment.control)
            for segment in segments
        ]


@functools.lru_cache(maxsize=4096)
def plain_text(text: str) -> str:
    """Convert a text to ASCII of the same width."""
    plain = "".join(character if ord(character) <= _LARGEST else _plain(character) for character in text)
    # Joined characters are narrower together than apart.
    width = cell_len(text)
    return plain.ljust(width)[:width]


def _plain(character: str) -> str:
    width = get_character_cell_size(character)
    base = _ASCII.get(ord(character)) or _by_name(character) or unicodedata.normalize("NFKD", character)[0]
    return (base if base.isascii() and base.isprintable() else "?").ljust(width)[:width]


def _by_name(character: str) -> str:
    """ASCII for lines, dashes, quotation marks and spaces, which are too many to list."""
    name, category = unicodedata.name(character, ""), unicodedata.category(character)
    if name.startswith("BOX DRAWINGS"):
        words = set(name.split())
        across, down = words & {"HORIZONTAL", "LEFT", "RIGHT"}, words & {"VERTICAL", "UP", "DOWN"}
        return "+" if across and down else "-" if across else "|" if down else "x"
    if category in {"Pi", "Pf"}:
        return '"' if "DOUBLE" in name else "'"
    return {"Pd": "-", "Zs": " "}.get(category, "")
