"""A simulated operator that presses random keys and resizes the window; its keys are kept for reports."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Iterator

from textual.binding import Binding
from textual.keys import key_to_character

from bench.terminal import Terminal
from tui.keys import ACTIONS
from tui.widgets.grid.table import Grid

KEYS_PER_S = 60
RESIZES_PER_S = 4
_NAMED = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "shift+tab": "\x1b[Z",
    "backspace": "\x7f",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "shift+right": "\x1b[1;2C",
    "shift+left": "\x1b[1;2D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "page up": "\x1b[5~",
    "page down": "\x1b[6~",
    "f1": "\x1bOP",
    "ctrl+p": "\x10",
    "ctrl+t": "\x14",
    "ctrl+u": "\x15",
    "ctrl+w": "\x17",
    "click": "\x1b[<0;9;7M\x1b[<0;9;7m",
}
_QUITS = frozenset({"q", "ctrl+q", "ctrl+c", "ctrl+z"})


def _registered() -> Iterator[str]:
    """Yield what a terminal sends for the keys of all screens and tables, so that those of a new one are pressed."""
    bindings = (binding.key for binding in Grid.BINDINGS if isinstance(binding, Binding))
    for keys in (*(action.keys for action in ACTIONS), *bindings):
        for key in keys.split(","):
            if key not in _QUITS and key not in _NAMED:
                character = key_to_character(key)
                if character is not None and character.isprintable():
                    yield character
                elif key.startswith("ctrl+"):
                    yield chr(ord(key[-1]) & 0x1F)


_CHARACTERS = "+-S_"
"""Whose names Textual does not resolve, and others."""
KEYS = tuple(dict.fromkeys((*_NAMED.values(), *_registered(), *_CHARACTERS)))
"""All but those that quit or suspend."""
MOST_LINES, MOST_COLUMNS = 60, 220


class Operator:
    """Presses random keys and resizes at random, reproducibly by seed."""

    def __init__(self, terminal: Terminal, seed: int) -> None:
        self._terminal = terminal
        self._random = random.Random(seed)
        self.last_keys: deque[str] = deque(maxlen=40)
        self.size = (0, 0)

    def storm(self, seconds: float, *, resizes: bool = True) -> None:
        """Keys and resizes for a time, at the rates above, while reading the output."""
        deadline_s = time.monotonic() + seconds
        due_s = time.monotonic()
        while time.monotonic() < deadline_s:
            if not self._terminal.alive():
                raise BrokenPipeError("the program has ended")
            self._press(self._random.choice(KEYS))
            if resizes and self._random.random() < RESIZES_PER_S / KEYS_PER_S:
                self.resize(self._random.randint(10, MOST_COLUMNS), self._random.randint(3, MOST_LINES))
            due_s += 1 / KEYS_PER_S
            self._terminal.drain(max(0.0, due_s - time.monotonic()))

    def resize(self, columns: int, lines: int) -> None:
        """Resize to a given size."""
        self.size = (columns, lines)
        self._terminal.resize(columns, lines)

    def resize_within(self, columns: tuple[int, int], lines: tuple[int, int]) -> None:
        """Resize to a size that shows the wanted text."""
        self.resize(self._random.randint(*columns), self._random.randint(*lines))

    def type(self, text: str) -> int:
        """Press keys one by one at the usual rate; returns the monotonic ns of the last one."""
        pressed_ns = 0
        for key in text:
            pressed_ns = self._press(key)
            if key != text[-1]:
                self._terminal.drain(1 / KEYS_PER_S)
        return pressed_ns

    def word(self) -> str:
        """Letters that no screen shows by itself, and of which none quits: typed too early they are keys."""
        return "".join(self._random.choices("jkxz", k=8))

    def chance(self) -> bool:
        """One of two."""
        return self._random.random() < 0.5

    def recent(self) -> str:
        """List the last keys."""
        return repr("".join(self.last_keys))

    def _press(self, key: str) -> int:
        self.last_keys.append(key)
        return self._terminal.press(key)
