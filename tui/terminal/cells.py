"""A model of the terminal's cells: of each frame only the cells that changed are sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from textual.strip import Strip

from tui.terminal.pens import Cell, NotOneColumn, Pen, Pens

RESET = "\x1b[0m"
ERASE_TO_END = "\x1b[K"
_ERASE_FROM = len(ERASE_TO_END) + 1
"""Fewer blanks than this are written."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of one line, drawn from column `x` of line `y` on; both count from 0."""

    x: int
    y: int
    strip: Strip


class ScreenCells:
    """The cells as the terminal has them, after all frames that were drawn with `draw`.

    Unknown ones, after `resize` and `forget`, are sent when they are drawn next. A line with characters on whose width
    terminals disagree is not modelled: it is sent whole, and forgotten.
    """

    def __init__(self, width: int = 0, height: int = 0) -> None:
        self._pens = Pens()
        self.resize(width, height)

    def resize(self, width: int, height: int) -> None:
        """Take a new size; terminals differ in what they show after it, so all cells become unknown."""
        self._width = width
        self._lines: list[list[Cell | None]] = [[None] * width for _ in range(height)]
        self._strips: list[dict[int, Strip]] = [{} for _ in range(height)]
        """By column, what each line shows where nothing was drawn over it; identical strips need no comparison."""

    def forget(self) -> None:
        """Another program may have drawn: all cells become unknown."""
        self.resize(self._width, len(self._lines))

    def draw(self, pieces: Iterable[Piece], console: Console) -> str:
        """Return the sequences that make the terminal show the pieces, given in the order of lines and columns."""
        if self._pens.are_too_many:
            self._pens = Pens()
            self.forget()
        frame = _Frame(self._pens)
        for y, line in groupby(pieces, key=attrgetter("y")):
            if y < len(self._lines):
                self._draw_line(frame, y, list(line), console)
        return frame.text()

    def _draw_line(self, frame: _Frame, y: int, pieces: list[Piece], console: Console) -> None:
        shown = self._strips[y]
        fresh = [piece for piece in pieces if shown.get(piece.x) is not piece.strip]
        try:
            drawn = [(piece, self._cells_of(piece, console)) for piece in fresh]
        except NotOneColumn:
            self._forget_line(y)
            for piece in pieces:
                frame.raw(y, piece.x, piece.strip.render(console))
            return
        for piece, cells in drawn:
            self._note_strip(piece)
            self._draw_cells(frame, y, piece.x, cells)

    def _cells_of(self, piece: Piece, console: Console) -> list[Cell]:
        colours = console._color_system or ColorSystem.TRUECOLOR
        cells: list[Cell] = []
        for text, style, _ in piece.strip:
            cells += map(self._pen_of(style, colours).cells.__getitem__, text)
        del cells[max(0, self._width - piece.x) :]
        return cells

    def _pen_of(self, style: Style | None, colours: ColorSystem) -> Pen:
        if style is None:
            return self._pens.plain
        if style._link:
            raise NotOneColumn
        ansi = style._ansi
        return self._pens.of(Strip.render_ansi(style, colours) if ansi is None else ansi)

    def _draw_cells(self, frame: _Frame, y: int, x: int, cells: list[Cell]) -> None:
        line = self._lines[y]
        before = line[x : x + len(cells)]
        if before == cells:
            return
        line[x : x + len(cells)] = cells
        changed = [x + i for i, (old, new) in enumerate(zip(before, cells, strict=True)) if old != new]
        for start, end in _runs(changed):
            frame.move(y, start, line)
            frame.write(line[start:end], at_end=end == self._width)

    def _note_strip(self, piece: Piece) -> None:
        start, end = piece.x, piece.x + piece.strip.cell_length
        shown = self._strips[piece.y]
        for x in [x for x, strip in shown.items() if x < end and start < x + strip.cell_length]:
            del shown[x]
        shown[start] = piece.strip

    def _forget_line(self, y: int) -> None:
        self._lines[y] = [None] * self._width
        self._strips[y] = {}


class _Frame:
    """Sequences of one frame; the cursor may be anywhere at its begin, the pen is plain at begin and end."""

    def __init__(self, pens: Pens) -> None:
        self._pens = pens
        self._pen = pens.plain
        self._out: list[str] = []
        self._y = self._x = -1
        """The cursor, -1 where it is unknown."""

    def text(self) -> str:
        self._plain()
        return "".join(self._out)

    def raw(self, y: int, x: int, text: str) -> None:
        """Write sequences that begin and end with the plain pen, and leave the cursor anywhere."""
        self._plain()
        self._out += (_to(y, x), text)
        self._y = self._x = -1

    def move(self, y: int, x: int, line: list[Cell | None]) -> None:
        """Move the cursor, or write again what is on the way if that is shorter."""
        if (y, x) == (self._y, self._x):
            return
        if y == self._y and 0 <= self._x < x:
            forward = "\x1b[C" if x == self._x + 1 else f"\x1b[{x - self._x}C"
            self._out.append(self._again(line[self._x : x], len(forward)) or forward)
        elif x == self._x and 0 <= self._y < y:
            self._out.append("\x1b[B" if y == self._y + 1 else f"\x1b[{y - self._y}B")
        else:
            self._out.append(_to(y, x))
        self._y, self._x = y, x

    def _again(self, cells: list[Cell | None], most_bytes: int) -> str:
        """Return the characters of cells that the pen in force draws; empty if they take more bytes."""
        if len(cells) > most_bytes:
            return ""
        text = "".join(cell[0] for cell in cells if cell is not None and self._draws(cell))
        return text if len(text) == len(cells) and len(text.encode()) <= most_bytes else ""

    def write(self, cells: list[Cell | None], *, at_end: bool) -> None:
        """Write cells from the cursor on; `at_end` if they reach the last column."""
        erased = self._plain_blanks(cells) if at_end else 0
        known = [cell for cell in cells if cell is not None]
        for cell in known[: len(known) - erased]:
            self._choose_pen(cell)
            self._out.append(cell[0])
        self._x += len(known)  # At the end of a line it is wrong, but then no cell follows it.
        if erased:
            self._choose_pen((" ", self._pens.plain))
            self._out.append(ERASE_TO_END)

    def _plain_blanks(self, cells: list[Cell | None]) -> int:
        """How many blanks at the end can be erased: those without a background, which not all terminals erase to."""
        blank = self._pens.plain.cells[" "]
        count = 0
        while count < len(cells) and cells[-1 - count] == blank:
            count += 1
        return count if count >= _ERASE_FROM else 0

    def _draws(self, cell: Cell) -> bool:
        char, pen = cell
        return pen is self._pen or (char == " " and pen is self._pen.blank)

    def _choose_pen(self, cell: Cell) -> None:
        if not self._draws(cell):
            sequence, self._pen = self._pens.change(self._pen, cell)
            self._out.append(sequence)

    def _plain(self) -> None:
        if self._pen is not self._pens.plain:
            self._out.append(RESET)
            self._pen = self._pens.plain


def _to(y: int, x: int) -> str:
    return f"\x1b[{y + 1};{x + 1}H" if x else f"\x1b[{y + 1}H"


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """Ranges, with exclusive ends, of adjacent numbers in a rising list."""
    if not numbers:
        return
    start = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield start, last + 1
            start = number
        last = number
    yield start, last + 1
