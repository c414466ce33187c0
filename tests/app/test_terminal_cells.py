"""Only changed cells are sent, and yet a terminal always shows what a full repaint would show."""

from __future__ import annotations

import functools
import io
import re
import sys
import time
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from bench.terminal import Terminal
from tui.textual_internals.cells import Piece, ScreenCells
from tui.textual_internals.pens import Pens

pyte = pytest.importorskip("pyte", reason="the terminal emulator pyte is not installed (requirements-dev.txt)")

WIDTH, HEIGHT = 12, 4
PATIENCE_S = 60.0
STYLES = [
    "", "bold", "dim", "italic", "bold red", "red", "green on blue", "on blue", "underline", "reverse red",
    "reverse", "strike on #102030", "#ff8000 on #102030", "#ff8000", "color(200)", "bold underline #ff8000 on blue",
    "default on default", "bright_red on bright_black",
]  # fmt: skip
WIDE = "a日b本 "
NARROW = "ab  ─⣿é"
PLAIN = pyte.Screen(1, 1).cursor.attrs
EMPTY = Strip([Segment(" " * WIDTH)], WIDTH)


@functools.cache
def console() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", legacy_windows=False)


@dataclass
class Emulator:
    """A terminal as the driver sets it up: without automatic wrap."""

    width: int = WIDTH
    height: int = HEIGHT

    def __post_init__(self) -> None:
        self.screen = pyte.Screen(self.width, self.height)
        self.stream = pyte.Stream(self.screen)
        self.stream.feed("\x1b[?7l")
        self.decode = getincrementaldecoder("utf-8")().decode

    def cells(self) -> list[list[object]]:
        """What is seen: characters, and of the style what shows on them."""
        return [[seen(self.screen.buffer[y][x]) for x in range(self.width)] for y in range(self.height)]


def seen(char: Any) -> object:
    shows = char.underscore or char.strikethrough or char.reverse or char.blink
    return (" ", char.bg) if char.data == " " and not shows else char


def strip(text: str, style: str = "") -> Strip:
    return Strip([Segment(text, Style.parse(style))])


def whole(screen: Iterable[Strip]) -> str:
    """A full repaint, as Textual sends it."""
    return "".join(f"\x1b[{y};1H{line.render(console())}" for y, line in enumerate(screen, 1))


def texts(chars: str, size: int) -> st.SearchStrategy[str]:
    return st.text(chars, min_size=1, max_size=size)


@st.composite
def strips(draw: st.DrawFn, chars: str, width: int = WIDTH) -> Strip:
    """A line of random runs, of exactly `width` columns."""
    runs = draw(st.lists(st.tuples(texts(chars, 4), st.sampled_from(STYLES)), min_size=1, max_size=5))
    segments = [Segment(text, Style.parse(style)) for text, style in runs]
    return Strip(segments).adjust_cell_length(width, Style.parse(draw(st.sampled_from(STYLES))))


@st.composite
def changes(draw: st.DrawFn, chars: str) -> list[Piece]:
    """A frame of some lines, whole or from a column on."""
    pieces = []
    for y in sorted(draw(st.sets(st.integers(0, HEIGHT - 1)))):
        x = draw(st.sampled_from([0, 0, 3, 7, WIDTH - 1])) if chars is NARROW else 0
        pieces.append(Piece(x, y, draw(strips(chars, WIDTH - x))))
    return pieces


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(st.lists(changes(NARROW), min_size=1, max_size=6))
def test_after_any_frames_the_terminal_shows_what_a_full_repaint_shows(frames: list[list[Piece]]) -> None:
    check(frames)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(changes(WIDE), changes("ab ")), min_size=1, max_size=5))
def test_lines_with_wide_characters_are_right_too(frames: list[list[Piece]]) -> None:
    check(frames)


def check(frames: list[list[Piece]]) -> None:
    cells, here, there = ScreenCells(WIDTH, HEIGHT), Emulator(), Emulator()
    screen = [EMPTY] * HEIGHT
    for pieces in frames:
        here.stream.feed(cells.draw(pieces, console()))
        for piece in pieces:
            screen[piece.y] = Strip.join([screen[piece.y].crop(0, piece.x), piece.strip])
        there.screen.reset()
        there.stream.feed("\x1b[?7l" + whole(screen))
        assert here.cells() == there.cells()
        assert here.screen.cursor.attrs == PLAIN, "the pen is left plain"


@given(st.sampled_from(STYLES), st.sampled_from(STYLES))
def test_every_change_of_pen_has_the_effect_of_a_reset_and_all_codes(before: str, after: str) -> None:
    here, there = Emulator(), Emulator()
    pens, system = Pens(), console()._color_system
    assert system is not None
    first, second = (pens.of(Strip.render_ansi(Style.parse(text), system)) for text in (before, after))
    sequences = [pens.change(pens.plain, ("x", first))[0], pens.change(first, ("x", second))[0]]
    here.stream.feed("".join(sequences) + "x")
    there.stream.feed(f"\x1b[{';'.join(('0', *second.codes))}mx")
    assert here.screen.cursor.attrs == there.screen.cursor.attrs


def test_an_unchanged_frame_sends_nothing() -> None:
    cells = ScreenCells(WIDTH, HEIGHT)
    assert cells.draw([Piece(0, 0, strip("abc", "red"))], console())
    assert cells.draw([Piece(0, 0, strip("abc", "red"))], console()) == ""


def test_a_changed_figure_sends_its_characters_only() -> None:
    cells = ScreenCells(40, 1)
    cells.draw([Piece(0, 0, strip("sda   12.5  88.1", "red"))], console())
    assert (
        cells.draw([Piece(0, 0, strip("sda   12.7  88.4", "red"))], console()) == "\x1b[1;10H\x1b[31m7\x1b[5C4\x1b[0m"
    )


def test_spaces_need_no_change_of_the_text_colour() -> None:
    cells = ScreenCells(40, 1)
    line = Strip([Segment("a", Style.parse("red on blue")), Segment(" ", Style.parse("green on blue"))])
    assert cells.draw([Piece(0, 0, line)], console()) == "\x1b[1H\x1b[31;44ma \x1b[0m"


def test_spaces_that_look_alike_are_not_sent_again() -> None:
    cells = ScreenCells(WIDTH, HEIGHT)
    assert cells.draw([Piece(0, 0, strip("   ", "bold red on blue"))], console())
    assert cells.draw([Piece(0, 0, strip("   ", "green on blue"))], console()) == ""


def test_blanks_to_the_end_of_a_line_are_erased() -> None:
    cells = ScreenCells(40, 1)
    cells.draw([Piece(0, 0, strip("x" * 40))], console())
    assert cells.draw([Piece(0, 0, strip("x" + " " * 39))], console()) == "\x1b[1;2H\x1b[K"


@pytest.mark.parametrize("forget", [lambda cells: cells.forget(), lambda cells: cells.resize(WIDTH, HEIGHT)])
def test_all_is_sent_again_after_another_program_or_a_resize(forget: object) -> None:
    cells = ScreenCells(WIDTH, HEIGHT)
    piece = Piece(0, 0, strip("abc", "red"))
    first = cells.draw([piece], console())
    forget(cells)  # type: ignore[operator]
    assert cells.draw([piece], console()) == first


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_curves_that_move_left_are_shifted_by_the_terminal(data: st.DataObject) -> None:
    """Two charts side by side, as wide as a terminal; each moves by itself, and new figures come at its end."""
    cells, here, there = ScreenCells(60, 1), Emulator(60, 1), Emulator(60, 1)
    left, right = (data.draw(strips(NARROW, 30)) for _ in range(2))
    for _ in range(4):
        left, right = (
            Strip.join([part.crop(0, 4), part.crop(4 + move), data.draw(strips(NARROW, move))]) if move else part
            for part, move in ((left, data.draw(st.integers(0, 7))), (right, data.draw(st.integers(0, 7))))
        )
        here.stream.feed(cells.draw([Piece(0, 0, left), Piece(30, 0, right)], console()))
        there.stream.feed(whole([Strip.join([left, right])]))
        assert here.cells() == there.cells()


@pytest.mark.parametrize("end", ["", "|" + "x" * 19])
def test_a_shift_is_short(end: str) -> None:
    cells = ScreenCells(40, 1)
    curve = "".join(chr(0x2800 + number * 7 % 256) for number in range(44))
    width = 40 - len(end)
    cells.draw([Piece(0, 0, strip(curve[:width] + end))], console())
    sent = cells.draw([Piece(0, 0, strip(curve[2 : width + 2] + end))], console())
    assert len(sent) < 30


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_a_long_line_that_moves_is_shifted_though_only_a_sample_of_it_is_looked_at(columns: int) -> None:
    text = "".join(chr(0x2801 + (number * 37) % 255) for number in range(160 + columns))
    cells = ScreenCells(160, 1)
    cells.draw([Piece(0, 0, strip(text[:160]))], console())
    moved = cells.draw([Piece(0, 0, strip(text[columns:]))], console())
    assert len(moved.encode()) < 30


def test_what_does_not_fit_is_not_drawn() -> None:
    cells, terminal = ScreenCells(WIDTH, HEIGHT), Emulator()
    terminal.stream.feed(cells.draw([Piece(10, 0, strip("abcdef")), Piece(0, HEIGHT, strip("x"))], console()))
    assert terminal.screen.display[0].endswith("ab")
    assert "x" not in "".join(terminal.screen.display)


def test_links_are_sent_as_they_are() -> None:
    cells = ScreenCells(WIDTH, HEIGHT)
    piece = Piece(0, 0, Strip([Segment("a", Style(link="https://example.org"))]))
    assert "https://example.org" in cells.draw([piece], console())
    assert "https://example.org" in cells.draw([piece], console()), "such a line is not modelled"


@pytest.mark.slow
def test_the_number_of_pens_is_bounded_and_drawing_goes_on() -> None:
    cells, terminal = ScreenCells(WIDTH, HEIGHT), Emulator()
    for number in range(10_000):
        colour = f"#{number * 1000 % (1 << 24):06x}"
        terminal.stream.feed(cells.draw([Piece(0, 0, strip("abc", colour))], console()))
    assert len(cells._pens._by_value) < 5000
    assert terminal.screen.buffer[0][0].fg == colour[1:]


@pytest.mark.slow
def test_the_screens_on_a_terminal_that_another_program_writes_to(tmp_path: Path) -> None:
    """What is sent over time makes the whole screen; Ctrl-L restores it, and so does a resize."""
    command = (sys.executable, "-m", "tui", "watch", "--interval=0.2")
    terminal = Terminal(command, 100, 30, environment={"HOME": str(tmp_path)})
    seen = Watched(terminal, 100, 30)
    try:
        seen.until(lambda text: "1 Over" in text and "LIVE" in text)
        terminal.press("6")
        seen.until(lambda text: "[6 Tree]" in text)
        for repair in (lambda: terminal.press("\x0c"), lambda: seen.resize(90, 28)):
            seen.stream.feed("\x1b[2;1HBROADCAST MESSAGE")
            assert "BROADCAST" in seen.text()
            repair()
            seen.until(lambda text: "BROADCAST" not in text and "[6 Tree]" in text)
    finally:
        terminal.close()


class Watched(Emulator):
    """An emulator behind a pseudo-terminal."""

    def __init__(self, terminal: Terminal, width: int, height: int) -> None:
        super().__init__(width, height)
        self.terminal = terminal
        self._fed = 0

    def text(self) -> str:
        return "\n".join(self.screen.display)

    def resize(self, width: int, height: int) -> None:
        self.screen.resize(height, width)
        self.terminal.resize(width, height)

    def until(self, condition: Callable[[str], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition(self.text()):
            assert time.monotonic() < deadline, self.text()
            self.terminal.drain(0.1)
            data, self._fed = bytes(self.terminal.output[self._fed :]), len(self.terminal.output)
            # Reports of keyboard modes, which the emulator does not know and prints.
            self.stream.feed(re.sub(r"\x1b\[[<>=?][\d;]*[u$p]+", "", self.decode(data)))
