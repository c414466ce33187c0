"""A wall of cells, one per row of a table: hundreds of disks in one view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from collectors.field import Thresholds
from collectors.model import Rows
from tui.text.glyphs import glyphs_of
from tui.text.safe import fit, fit_name
from tui.widgets.painted import Paged
from tui.widgets.wall_layout import NAMED_WIDTH, CellRow, WallGroup, WallLayout, wall_layout

MISSING, IDLE, LOW, MIDDLE, WARM, HOT = range(6)
"""Strength of a cell."""
STYLES = ("missing", "idle", "low", "middle", "warm", "hot")

_BRACKETS_FROM_WIDTH = 20
_LOW_PART = 4.0
"""A figure below this part of the warm threshold is low."""


class Tiles(Protocol):
    """What tiles show below their names."""

    def lines_of(self, row: int, width: int) -> Sequence[str]:
        """Lines of the tile of a row, each at most that wide."""


def strengths(values: NDArray[np.float64], thresholds: Thresholds) -> NDArray[np.intp]:
    """Map figures to MISSING to HOT."""
    with np.errstate(invalid="ignore"):
        above = [values > 0, values >= thresholds.warm / _LOW_PART, values >= thresholds.warm, values >= thresholds.hot]
    return np.where(np.isnan(values), MISSING, IDLE + np.sum(above, axis=0))


def legend(glyphs: Sequence[str], thresholds: Thresholds, unit: str) -> list[tuple[str, str]]:
    """Name each strength, as text and style."""
    warm, hot = f"{thresholds.warm:g}", f"{thresholds.hot:g} {unit}".rstrip()
    texts = ("not known", "none", f"< {thresholds.warm / _LOW_PART:g}", f"< {warm}", f">= {warm}", f">= {hot}")
    return [(f"{glyphs[strength]} {texts[strength]}", STYLES[strength]) for strength in (1, 2, 3, 4, 5, 0)]


_NO_ROWS: NDArray[np.intp] = np.empty(0, np.intp)


class Wall(Paged, can_focus=True, inherit_bindings=False):
    """Cells in a given order, with a cursor that stays on its row; only changed lines are sent."""

    TAKES_ARROWS = True
    DEFAULT_CSS = """
    Wall { overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"wall--{part}" for part in (*STYLES, "cursor", "empty", "heading")}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1, 0)", "Cell to the left", show=False, id="wall-left"),
        Binding("right", "move(1, 0)", "Cell to the right", show=False, id="wall-right"),
        Binding("up,k", "move(0, -1)", "Cell above", show=False, id="wall-up"),
        Binding("down,j", "move(0, 1)", "Cell below", show=False, id="wall-down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="wall-page-up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="wall-page-down"),
        Binding("enter", "select", "Open", show=False, id="wall-select"),
    ]

    @dataclass
    class CellHighlighted(Message):
        """The cursor moved to another cell."""

        key: str

    @dataclass
    class CellSelected(Message):
        """A cell was chosen with Enter or a double click."""

        key: str

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name for it
        super().__init__(id=id)
        self.empty_text = "waiting for the first sample"
        """Text shown without cells."""
        self._rows = Rows((), ())
        self._names: Sequence[str] = ()
        self._order = _NO_ROWS
        self._strengths = _NO_ROWS
        self._tiles: Tiles | None = None
        self._groups: tuple[WallGroup, ...] = ()
        self._cursor = 0
        self._cursor_key: str | None = None
        self._styles: dict[str, Style] | None = None

    @property
    def cursor_key(self) -> str | None:
        """Key of the cell under the cursor; None without cells."""
        return self._cursor_key

    def lines_within(self, width: int, most: int) -> int:
        """Lines of all cells in an area of this width and at most that height."""
        return min(most, wall_layout(self._groups, len(self._order), Size(width, most)).lines)

    def show(
        self,
        rows: Rows,
        names: Sequence[str],
        order: NDArray[np.intp],
        strengths: NDArray[np.intp],
        tiles: Tiles | None = None,
        *,
        groups: Sequence[WallGroup] = (),
    ) -> None:
        """Take new cells.

        Args:
            rows: one for each cell.
            names: labels by row.
            order: rows from the first cell to the last.
            strengths: MISSING to HOT, by row.
            tiles: what large cells show besides their names.
            groups: headings of adjacent cells, all of them in order; none if there are no groups.
        """
        self._rows, self._names, self._order, self._strengths = rows, names, order, strengths
        self._tiles, self._groups = tiles, tuple(groups)
        row = rows.positions.get(self._cursor_key or "")
        positions = _NO_ROWS if row is None else np.flatnonzero(order == row)
        self._put(int(positions[0]) if len(positions) else self._cursor, follow=False)

    def action_move(self, columns: int, lines: int) -> None:
        """Move the cursor; at the end of a line it continues in the next."""
        self._put(self._layout.moved(self._cursor + columns, lines))

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages."""
        self.action_move(0, pages * max(1, self.area.height // self._layout.cell_height - 1))

    def action_select(self) -> None:
        """Select the cell under the cursor."""
        if self._cursor_key is not None:
            self.post_message(self.CellSelected(self._cursor_key))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to a cell; a second click selects it."""
        offset, layout = event.get_content_offset(self), self._layout
        if offset is None or offset.x >= layout.columns * layout.cell_width:
            return
        row = layout.row_at(offset.y + self.scroll_offset.y)
        position = -1 if row is None else row.start + offset.x // layout.cell_width
        if row is not None and position < row.stop:
            self._put(position)
            if event.chain == 2:
                self.action_select()

    def on_resize(self) -> None:
        """Lay out again and keep the cursor visible."""
        self.forget_lines()
        self._put(self._cursor)

    @property
    def _layout(self) -> WallLayout:
        return wall_layout(self._groups, len(self._order), self.area)

    def _put(self, position: int, *, follow: bool = True) -> None:
        """Move the cursor to a position, clipped to the cells, draw, and report a new cell under it."""
        self._cursor = max(0, min(position, len(self._order) - 1))
        key = self._rows.keys[int(self._order[self._cursor])] if len(self._order) else None
        previous_key, self._cursor_key = self._cursor_key, key
        layout = self._layout
        self.set_line_count(layout.lines)
        (first, line), top = layout.lines_of(self._cursor), self.scroll_offset.y
        if follow and not (top <= first and line < top + self.area.height):
            self.scroll_to(y=first if first < top else line - self.area.height + 1, animate=False, force=True)
        self.repaint()
        if key is not None and key != previous_key:
            self.post_message(self.CellHighlighted(key))

    def draw_lines(self) -> list[Strip]:
        """Draw all visible lines."""
        layout, styles, top = self._layout, self._cached_style(), self.scroll_offset.y
        if not len(self._order):
            text = fit(f" {self.empty_text}", self.area.width)
            lines = [Strip([Segment(text, styles["empty"])], self.area.width)]
        else:
            lines = [self._line(line, layout) for line in range(top, min(top + self.area.height, layout.lines))]
        return (lines + [Strip.blank(self.area.width, styles["idle"])] * self.area.height)[: self.area.height]

    def _line(self, line: int, layout: WallLayout) -> Strip:
        """Draw one line: a heading, names of cells, or what is below them."""
        row = layout.row_at(line)
        if row is None:
            return self._heading_line(layout.heading_at(line))
        if line > row.line:
            return self._tile_line(self._order[row.start : row.stop].tolist(), line - row.line - 1, layout.cell_width)
        return self._cells_line(row, layout.cell_width)

    def _heading_line(self, group: WallGroup) -> Strip:
        """Draw the name of a group, and how many cells it has, above them."""
        width, styles = self.area.width, self._cached_style()
        count = f" ({group.cells:,})" if width >= _BRACKETS_FROM_WIDTH else f" {group.cells:,}"
        name = fit_name(group.name, max(1, width - len(count)), glyphs_of(self).ellipsis).rstrip()
        segments = [Segment(name, styles["heading"]), Segment(count, styles["idle"])]
        return Strip(segments).adjust_cell_length(width, styles["idle"])

    def _cells_line(self, cells: CellRow, width: int) -> Strip:
        """Draw names or marks of cells, adjacent ones of one style as one segment."""
        styles, segments = self._cached_style(), list[Segment]()
        text, style = "", styles["idle"]
        for position, row in enumerate(self._order[cells.start : cells.stop].tolist(), cells.start):
            strength = int(self._strengths[row])
            for part, part_style in self._cell(row, strength, width, at_cursor=position == self._cursor):
                if part_style != style:
                    segments.append(Segment(text, style))
                    text, style = "", part_style
                text += part
        segments.append(Segment(text, style))
        strip = Strip([segment for segment in segments if segment.text])
        return strip.adjust_cell_length(self.area.width, styles["idle"])

    def _tile_line(self, rows: Sequence[int], number: int, width: int) -> Strip:
        """Draw one line below the names."""
        styles, segments = self._cached_style(), list[Segment]()
        for row in rows:
            lines = () if self._tiles is None else self._tiles.lines_of(row, width - 4)
            text = lines[number] if number < len(lines) else ""
            style = styles["idle" if number else STYLES[int(self._strengths[row])]]
            segments.append(Segment(f"   {fit(text, width - 4)} ", style))
        return Strip(segments).adjust_cell_length(self.area.width, styles["idle"])

    def _cell(self, row: int, strength: int, width: int, *, at_cursor: bool) -> Iterator[tuple[str, Style]]:
        """Yield the parts of a cell: cursor and strength mark side by side, where there is room."""
        glyphs, styles = glyphs_of(self), self._cached_style()
        glyph, style = glyphs.strengths[strength], styles[STYLES[strength]]
        cursor = style + styles["cursor"] if at_cursor else style
        if width < NAMED_WIDTH:
            mark, rest = glyph * (width - 1), glyphs.more_left if at_cursor else " "
            yield from [(mark, style), (rest, cursor)] if mark else [(glyph, cursor)]
            return
        yield glyph * 2, style
        yield f" {fit_name(self._names[row], width - 4, glyphs.ellipsis)} ", cursor

    def invalidate_style(self) -> None:
        """Clear cached styles: theme or focus changed."""
        self._styles = None

    def _cached_style(self) -> dict[str, Style]:
        """Styles, looked up once per theme and focus."""
        if self._styles is None:
            self._styles = {
                part: self.get_component_rich_style(f"wall--{part}") for part in (*STYLES, "empty", "heading")
            }
            self._styles["cursor"] = self.get_component_rich_style("wall--cursor", partial=True)
        return self._styles
