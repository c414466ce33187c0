"""A model of the terminal's cells: only the cells of a frame that changed are sent."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import compress, groupby
from operator import attrgetter, is_not

from msgspec import Struct
from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style
from textual.strip import Strip

from tui.terminal.abilities import FULL, Abilities
from tui.textual_internals.frame_sequences import FrameSequences
from tui.textual_internals.pens import Cell, NotOneColumn, Pen, Pens

_MARKS = "[\\u0300-\\u036f\\u0483-\\u0489\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u20d0-\\u20ff\\ufe20-\\ufe2f]"
_STACKED_MARKS = re.compile(f"({_MARKS}){_MARKS}+")
"""Terminals draw a stack of marks over the lines above and below: one is left, and no language needs more of these."""
_SHIFT_FROM = 8
"""Fewest changed cells for which a shift is searched."""
_MOST_SHIFT = 6
_SHIFTED_WRONG = 0.6
"""A shift that leaves more than this share of the changes is not tried."""
_SAMPLED = 32
"""Changed cells beyond which a sample tells which shift explains them: the search would cost the most."""


class Piece(Struct, frozen=True):
    """A part of one line, drawn from column `x` of line `y` on; both count from 0."""

    x: int
    y: int
    strip: Strip


class ScreenCells:
    """The cells as the terminal has them, after all frames that were drawn with `draw`.

    Unknown ones, after `resize` and `forget`, are sent when they are drawn next. A line with characters on whose width
    terminals disagree is not modelled: it is sent whole, and forgotten.
    """

    def __init__(self, width: int = 0, height: int = 0, abilities: Abilities = FULL) -> None:
        self._abilities = abilities
        self._pens = Pens(abilities)
        self._last_shift = 1
        self.resize(width, height)

    def resize(self, width: int, height: int) -> None:
        """Take a new size; terminals differ in what they show after it, so all cells become unknown."""
        self._width = width
        self._lines: list[list[Cell | None]] = [[None] * width for _ in range(height)]
        self._strips: list[dict[int, Strip]] = [{} for _ in range(height)]
        """What each line shows where nothing was drawn over it, by column; identical strips need no comparison."""

    def forget(self) -> None:
        """Another program may have drawn: all cells become unknown."""
        self.resize(self._width, len(self._lines))

    def draw(self, pieces: Iterable[Piece], console: Console) -> str:
        """Return the sequences that make the terminal show the pieces, given in the order of lines and columns."""
        if self._pens.are_too_many:
            self._pens = Pens(self._abilities)
            self.forget()
        frame = FrameSequences(self._pens)
        for y, line in groupby(pieces, key=attrgetter("y")):
            if y < len(self._lines):
                self._draw_line(frame, y, list(line), console)
        return frame.text()

    def _draw_line(self, frame: FrameSequences, y: int, pieces: list[Piece], console: Console) -> None:
        shown = self._strips[y]
        fresh = [piece for piece in pieces if shown.get(piece.x) is not piece.strip]
        try:
            drawn = [(piece, self._cells_of(piece, console)) for piece in fresh]
        except NotOneColumn:
            self._forget_line(y)
            for piece in pieces:
                frame.raw(y, piece.x, _STACKED_MARKS.sub(r"\1", piece.strip.render(console)))
            return
        for piece, cells in drawn:
            self._note_strip(piece)
            self._draw_cells(frame, y, piece.x, cells)

    def _cells_of(self, piece: Piece, console: Console) -> list[Cell]:
        colours = console._color_system or ColorSystem.TRUECOLOR
        cells: list[Cell] = []
        known = self._pens.by_ansi
        for text, style, _ in piece.strip:
            # The pen of nearly all texts is known; a call for each would take longer than its cells.
            ansi = None if style is None or style._link else style._ansi
            pen = None if ansi is None else known.get(ansi)
            cells += map((pen or self._pen_of(style, colours)).cells.__getitem__, text)
        del cells[max(0, self._width - piece.x) :]
        return cells

    def _pen_of(self, style: Style | None, colours: ColorSystem) -> Pen:
        if style is None:
            return self._pens.plain
        if style._link:
            raise NotOneColumn
        if style._ansi is None:
            style._ansi = self._pens.ansi_of(style, colours)
        return self._pens.of(style._ansi)

    def _draw_cells(self, frame: FrameSequences, y: int, x: int, cells: list[Cell]) -> None:
        line = self._lines[y]
        before = line[x : x + len(cells)]
        # Equal cells are the same object.
        changed = list(compress(range(len(cells)), map(is_not, before, cells)))
        if not changed:
            return
        line[x : x + len(cells)] = cells
        start, end = changed[0], changed[-1] + 1
        columns = self._shifted_by(before[start:end], cells[start:end], len(changed))
        if not columns:
            frame.draw(y, x, changed, line)
            return
        plain, shifted = frame.fork(), frame.fork()
        plain.draw(y, x, changed, line)
        shifted.move(y, x + start, line)
        shifted.shift_left(columns, end - start, at_end=x + end == self._width)
        now = [*before[start + columns : end], *[None] * columns]
        shifted.draw(y, x, [i for i, old in enumerate(now, start) if old is not cells[i]], line)
        frame.join(min(plain, shifted, key=FrameSequences.count_bytes))

    def _shifted_by(self, before: list[Cell | None], cells: list[Cell], changed: int) -> int:
        """Find by how many columns a curve moved to the left, 0 if no move explains most of the changes."""
        if changed < _SHIFT_FROM or not self._abilities.shifts or None in before:
            return 0
        every = 1 + changed // _SAMPLED
        most = min(_MOST_SHIFT, len(cells) // 2)
        likely: list[int] = [min(self._last_shift, most), *range(1, most + 1)]
        for columns in likely:
            wrong = sum(map(is_not, before[columns::every], cells[::every])) * every + columns
            if wrong < changed * _SHIFTED_WRONG:
                self._last_shift = columns
                return columns
        return 0

    def _note_strip(self, piece: Piece) -> None:
        start, end = piece.x, piece.x + piece.strip.cell_length
        shown = self._strips[piece.y]
        for x in [x for x, strip in shown.items() if x < end and start < x + strip.cell_length]:
            del shown[x]
        shown[start] = piece.strip

    def _forget_line(self, y: int) -> None:
        self._lines[y] = [None] * self._width
        self._strips[y] = {}
