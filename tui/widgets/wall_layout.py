"""Where the cells of a wall are, and the headings of their groups."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import attrgetter

from msgspec import Struct
from textual.geometry import Size

NAMED_WIDTH = 16
"""Width from which on a cell shows its name."""
_TILE = Size(28, 4)
"""A cell with figures and a recent history below its name, and a blank line."""
_CELLS = (_TILE, Size(NAMED_WIDTH, 1), Size(3, 1), Size(2, 1), Size(1, 1))
"""Sizes of a cell; the largest that shows all disks at once is used."""
_START, _LINE = attrgetter("start"), attrgetter("line")


class WallGroup(Struct, frozen=True):
    """Adjacent cells below a heading."""

    name: str
    cells: int


class CellRow(Struct, frozen=True):
    """Cells side by side, as positions in the order of all, and their first line."""

    start: int
    stop: int
    line: int


class WallLayout(Struct, frozen=True):
    """Cells laid out on a size."""

    columns: int
    cell_width: int
    cell_height: int
    lines: int
    rows: tuple[CellRow, ...]
    headings: tuple[tuple[int, WallGroup], ...]
    """Lines of the headings, from the top down."""

    def row_at(self, line: int) -> CellRow | None:
        """Cells on a line; None on a heading."""
        at = bisect_right(self.rows, line, key=_LINE) - 1
        return self.rows[at] if at >= 0 and line < self.rows[at].line + self.cell_height else None

    def heading_at(self, line: int) -> WallGroup:
        """Return the heading on a line without cells."""
        return self.headings[bisect_right(self.headings, line, key=_line_of) - 1][1]

    def lines_of(self, position: int) -> tuple[int, int]:
        """First line to show with a cell, which is the heading where it begins a group, and the line of its name."""
        if not self.rows:
            return 0, 0
        line = self.rows[self._row_of(position)].line
        return line - any(line == above + 1 for above, _ in self.headings), line

    def moved(self, position: int, lines: int) -> int:
        """Position a number of rows below a cell, or above; in a shorter row its last cell."""
        if not lines or not self.rows:
            return position
        at = self._row_of(position)
        row = self.rows[max(0, min(at + lines, len(self.rows) - 1))]
        return min(row.start + position - self.rows[at].start, row.stop - 1)

    def _row_of(self, position: int) -> int:
        return max(0, bisect_right(self.rows, position, key=_START) - 1)


def _line_of(heading: tuple[int, WallGroup]) -> int:
    return heading[0]


@lru_cache(maxsize=4)
def wall_layout(groups: tuple[WallGroup, ...], cells: int, size: Size) -> WallLayout:
    """Choose the largest cells with which all are visible, or else the smallest; without groups there is no heading."""
    counts = [group.cells for group in groups] or [cells]
    cell = next((one for one in _CELLS if _lines(counts, size.width, one, len(groups)) <= size.height), _CELLS[-1])
    columns = max(1, size.width // cell.width)
    rows, headings = list[CellRow](), list[tuple[int, WallGroup]]()
    line = start = 0
    for number, count in enumerate(counts):
        if groups:
            headings.append((line, groups[number]))
            line += 1
        rows += _rows(start, count, columns, line, cell.height)
        line += -(-count // columns) * cell.height
        start += count
    return WallLayout(columns, cell.width, cell.height, line, tuple(rows), tuple(headings))


def _rows(start: int, count: int, columns: int, line: int, height: int) -> Iterator[CellRow]:
    for number, first in enumerate(range(start, start + count, columns)):
        yield CellRow(first, min(first + columns, start + count), line + number * height)


def _lines(counts: Sequence[int], width: int, cell: Size, headings: int) -> int:
    columns = max(1, width // cell.width)
    return sum(-(-count // columns) for count in counts) * cell.height + headings
