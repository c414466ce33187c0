"""What a terminal shows of a program that sends only changed cells: a prompt, and a word at its typing pace."""

from __future__ import annotations

import codecs
import re

import pyte

PALETTE_PROMPT = re.compile("type part of a name")
FILTER_PROMPT = re.compile(r"/[▏_]  ")
"""An empty filter with its caret, before the number of rows."""


PROMPTS = re.compile(f"{PALETTE_PROMPT.pattern}|{FILTER_PROMPT.pattern}")
BEING_TYPED = re.compile(r"Enter: \w+ +Esc: cancel|/[^/]*[▏_]  ")
"""A palette, or the filter of a table with its caret, whatever was typed there."""


class ShownText:
    """Follows the output from a complete redraw on, in an emulated terminal."""

    def __init__(self, columns: int, lines: int) -> None:
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.Stream(self._screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, chunk: bytes) -> bool:
        """Take more output; False, as nothing was looked for."""
        self._stream.feed(self._decoder.decode(chunk))
        return False

    def shows(self, wanted: re.Pattern[str] | str) -> bool:
        """Whether a text, or what matches a pattern, is in one of its lines."""
        pattern = re.compile(re.escape(wanted)) if isinstance(wanted, str) else wanted
        return any(pattern.search(line) for line in self._screen.display)

    def text(self) -> str:
        """All that is shown, in one line."""
        return " ".join(" ".join(self._screen.display).split())
