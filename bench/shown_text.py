"""Finds a typed word on a screen of which only changed cells are drawn, at the pace of its typing."""

from __future__ import annotations

import codecs

import pyte


class TypedWord:
    """Follows the output from just before a word is typed, in an emulated terminal."""

    def __init__(self, word: str, columns: int, lines: int) -> None:
        self._word = word
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.Stream(self._screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def is_seen(self, chunk: bytes) -> bool:
        """Take more output; return whether the whole word is on the screen."""
        self._stream.feed(self._decoder.decode(chunk))
        return any(self._word in line for line in self._screen.display)
