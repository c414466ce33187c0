"""The control sequences of one frame: moves, pens and characters, the shortest there are."""

from __future__ import annotations

from collections.abc import Iterator

from tui.textual_internals.pens import Cell, Pens

RESET = "\x1b[0m"
ERASE_TO_END = "\x1b[K"
_ERASE_FROM = len(ERASE_TO_END) + 1
"""Fewer blanks than this are written."""


class FrameSequences:
    """Sequences of one frame; the cursor may be anywhere at its begin, the pen is plain at begin and end."""

    def __init__(self, pens: Pens) -> None:
        self._pens = pens
        self._pen = pens.plain
        self._out: list[str] = []
        self._y = self._x = -1
        """The cursor, -1 where it is unknown."""

    def fork(self) -> FrameSequences:
        """Begin a way to go on from here; one of them is taken with `join`."""
        way = FrameSequences(self._pens)
        way._pen, way._y, way._x = self._pen, self._y, self._x
        return way

    def join(self, way: FrameSequences) -> None:
        """Go on as this fork does."""
        self._out += way._out
        self._pen, self._y, self._x = way._pen, way._y, way._x

    def count_bytes(self) -> int:
        """Count the bytes of what was written."""
        return sum(len(text.encode()) for text in self._out)

    def text(self) -> str:
        """Return all of it, with the pen made plain."""
        self._plain()
        return "".join(self._out)

    def raw(self, y: int, x: int, text: str) -> None:
        """Write sequences that begin and end with the plain pen, and leave the cursor anywhere."""
        self._plain()
        self._out += (_to(y, x), text)
        self._y = self._x = -1

    def draw(self, y: int, x: int, changed: list[int], line: list[Cell | None]) -> None:
        """Write the cells of a line at these distances from `x`, which rise."""
        for start, end in runs_of(changed):
            self.move(y, x + start, line)
            self.write(line[x + start : x + end], at_end=x + end == len(line))

    def shift_left(self, columns: int, width: int, *, at_end: bool) -> None:
        """Move `width` cells from the cursor on to the left; the last ones become blank in any colour."""
        self._out.append(f"\x1b[{columns}P")
        if not at_end:  # What follows them goes back to where it was.
            forward = width - columns
            self._out.append(f"\x1b[{forward}C\x1b[{columns}@")
            self._x += forward

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
        text = ""
        for cell in cells:
            if cell is None or not self._draws(cell):
                return ""
            text += cell[0]
        return text if len(text.encode()) <= most_bytes else ""

    def write(self, cells: list[Cell | None], *, at_end: bool) -> None:
        """Write cells from the cursor on; `at_end` if they reach the last column."""
        erased = self._plain_blanks(cells) if at_end else 0
        known = [cell for cell in cells if cell is not None]
        pen, put = self._pen, self._out.append
        for cell in known[: len(known) - erased]:
            char, wanted = cell
            # As in _draws; this runs for every cell that is sent.
            if wanted is not pen and (char != " " or wanted is not pen.blank):
                sequence, pen = self._pens.change(pen, cell)
                put(sequence)
            put(char)
        self._pen = pen
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


def runs_of(numbers: list[int]) -> Iterator[tuple[int, int]]:
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
