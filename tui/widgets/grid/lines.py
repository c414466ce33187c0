"""The lines of a grid: which columns fit, and header and rows as strips of styled text."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from collectors.model import FrameTable, Tier
from engine.replacing import replace
from engine.text import safe_text
from tui.text.columns import GridColumn, trend_text
from tui.text.glyphs import Glyphs
from tui.text.safe import fit, fit_name, width_of
from tui.widgets.grid.filtering import GridFilter
from tui.widgets.grid.rows import FLAT, NAME, Arrangement, RowNames, Sorting

PINNED_MARK = "^"
"""Mark before the name of a pinned row."""
_GUTTER = 1
_EDGE = 1
"""Cell at the right that marks hidden columns."""
_MARKS = 2
"""Cells of a column besides its figure: the heat mark before, which also separates columns, and the tier mark after."""
_NAME_LEAST = 8
_NAME_MOST = 40


class GridStyle(Struct, frozen=True):
    """Marks and styles of one grid; styles by the part of a component class after `grid--`."""

    glyphs: Glyphs
    plain: Mapping[str, Style]
    under_cursor: Mapping[str, Style]


class GridLayout(Struct, frozen=True):
    """What fits into a width: the name, then whole columns; figures are never cut."""

    width: int
    name_width: int
    columns: tuple[GridColumn, ...]
    rest: int
    """Cells left over at the right."""
    more_left: bool
    more_right: bool

    def field_at(self, x: int) -> str | None:
        """Field id of the column at a cell of the header, None outside the columns."""
        start = _GUTTER + self.name_width
        if x < start:
            return NAME
        for column in self.columns:
            start += column.width + _MARKS
            if x < start:
                return column.field_id
        return None


def lay_out(columns: Sequence[GridColumn], width: int, widest_name: int, first: int, name_part: int = 3) -> GridLayout:
    """Lay out the name, at most that part of the width, and as many whole columns from `first` on as fit."""
    room = max(0, width - _GUTTER)
    name_width = min(max(widest_name, _NAME_LEAST), _NAME_MOST, max(_NAME_LEAST, room // name_part), room)
    room -= name_width
    fitting: list[GridColumn] = []
    for column in columns[first:]:
        if room - _EDGE < column.width + _MARKS:
            break
        fitting.append(column)
        room -= column.width + _MARKS
    return GridLayout(width, name_width, tuple(fitting), room, first > 0, first + len(fitting) < len(columns))


_WIDEST_TREND = 36


def with_wide_trend(layout: GridLayout) -> GridLayout:
    """Give the cells left over to the column with the history, if all columns are shown."""
    if layout.more_left or layout.more_right or layout.rest <= _EDGE:
        return layout
    columns = list(layout.columns)
    for number, column in enumerate(columns):
        if column.trend_of:
            width = max(column.width, min(column.width + layout.rest - _EDGE, _WIDEST_TREND))
            columns[number] = replace(column, width=width)
            return replace(layout, columns=tuple(columns), rest=layout.rest - (width - column.width))
    return layout


def header_line(layout: GridLayout, sorting: Sorting, name_title: str, style: GridStyle) -> Strip:
    """Titles, with an arrow at the sorted column and marks for hidden columns."""
    glyphs = style.glyphs
    arrow = glyphs.descending if sorting.descending else glyphs.ascending
    by_name = sorting.field_id == NAME
    title = f"{name_title} {arrow}" if by_name else name_title
    runs = [
        (glyphs.more_left if layout.more_left else " ", "header"),
        (fit(title, layout.name_width, glyphs.ellipsis), "header-sort" if by_name else "header"),
    ]
    for column in layout.columns:
        is_sorted = column.field_id == sorting.field_id
        title = f" {column.title}".ljust(column.width) if column.align == "left" else column.title.rjust(column.width)
        text = " " + title + (arrow if is_sorted else " ")
        runs.append((text, "header-sort" if is_sorted else "header"))
    return _strip(runs, layout, style.plain, "header", glyphs.more_right if layout.more_right else "")


def unit_line(layout: GridLayout, style: GridStyle) -> Strip:
    """Units under the titles, for grids with enough lines."""
    text = " " * (_GUTTER + layout.name_width)
    text += "".join(" " + column.unit.rjust(column.width) + " " for column in layout.columns)
    return _strip([(text, "header")], layout, style.plain, "header")


_FILTER_LEAST = 12
"""Cells that the end of a filter keeps beside a long message."""


def filter_line(grid_filter: GridFilter, count: str, layout: GridLayout, style: GridStyle) -> Strip:
    """Draw the filter, with the part that is not in force marked, and how many rows match or what is wrong."""
    glyphs, width = style.glyphs, layout.width
    at = grid_filter.problem_at
    text = grid_filter.text
    good, bad = (text, "") if at is None else (text[:at], text[at:])
    tail = glyphs.caret if grid_filter.editing else ""
    head = "/" if text or grid_filter.editing else ""
    note = f"  {grid_filter.problem or count} "
    room = max(width - width_of(note), min(_FILTER_LEAST, width))
    runs = [(head, "header"), (safe_text(good), "filter"), (safe_text(bad), "warm"), (tail, "filter")]
    strip = Strip([Segment(run, style.plain[name]) for run, name in runs if run])
    if strip.cell_length > room:
        cut = strip.crop(strip.cell_length - room + 1)
        strip = Strip([Segment(glyphs.ellipsis, style.plain["header"]), *cut])
    note_style = style.plain["warm" if grid_filter.problem else "header"]
    note = fit(note, max(0, width - strip.cell_length), glyphs.ellipsis)
    return Strip([*strip, Segment(note, note_style)]).adjust_cell_length(width, style.plain["header"])


def text_line(text: str, style_name: str, layout: GridLayout, style: GridStyle) -> Strip:
    """One line of text across the grid."""
    return Strip([Segment(fit(text, layout.width, style.glyphs.ellipsis), style.plain[style_name])], layout.width)


class TrendSource(Protocol):
    """Where the recent histories of rows come from."""

    def of(self, keys: Sequence[str], field_id: str, cells: int) -> NDArray[np.float64]:
        """History of a field by row, of shape (rows, cells), NaN where it is not known."""


class RowPainter:
    """Draws rows of one table in one layout; rows drawn before are kept, as long as it is used."""

    def __init__(
        self,
        layout: GridLayout,
        style: GridStyle,
        arrangement: Arrangement = FLAT,
        pinned: Sequence[str] = (),
        trends: TrendSource | None = None,
    ) -> None:
        """Take where and how to draw; `pinned` holds keys of rows that are marked as pinned."""
        self._trends = trends
        self._pinned = frozenset(pinned)
        self._layout = layout
        self._style = style
        self._arrangement = arrangement
        self._painted: dict[int, Strip] = {}
        """Painted rows, as they are while not under the cursor."""
        self._under = {style.plain[part]: under for part, under in style.under_cursor.items()}

    def draws(self, layout: GridLayout, style: GridStyle) -> bool:
        """Whether it draws this way."""
        return style is self._style and layout == self._layout

    def paint(self, table: FrameTable, names: RowNames, rows: NDArray[np.intp], cursor: int) -> list[Strip]:
        """Draw the given rows; `cursor` is the index of the one under the cursor, if any."""
        wanted = rows.tolist()
        fresh = [row for row in wanted if row not in self._painted]
        self._painted |= zip(fresh, self._paint_fresh(table, names, fresh), strict=True)
        lines = [self._painted[row] for row in wanted]
        if 0 <= cursor < len(lines):
            lines[cursor] = self._under_cursor(lines[cursor])
        return lines

    def _under_cursor(self, line: Strip) -> Strip:
        """Mark a row, and give it the styles of the cursor, without formatting its figures again."""
        segments = [Segment(text, style and self._under[style]) for text, style, _ in line]
        if segments:
            segments[0] = Segment(self._style.glyphs.cursor + segments[0].text[1:], segments[0].style)
        return Strip(segments, line.cell_length)

    def _paint_fresh(self, table: FrameTable, names: RowNames, rows: Sequence[int]) -> Iterator[Strip]:
        if not rows:
            return
        by_column = [self._cells(column, table, np.array(rows, np.intp)) for column in self._layout.columns]
        ellipsis, name_width, prefix = self._style.glyphs.ellipsis, self._layout.name_width, self._arrangement.prefix
        for position, row in enumerate(rows):
            name = fit_name(prefix(row) + names.shown(row), name_width, ellipsis)
            runs = [(self._mark(table.rows.keys[row]) + name, "name")]
            runs += [cells[position] for cells in by_column]
            yield _strip(runs, self._layout, self._style.plain, "exact")

    def _mark(self, key: str) -> str:
        return PINNED_MARK if key in self._pinned else " "

    def _cells(self, column: GridColumn, table: FrameTable, rows: NDArray[np.intp]) -> list[tuple[str, str]]:
        """List the cells of one column, by row: text between its heat and tier marks, and style."""
        if column.trend_of:
            return self._trend_cells(column, table, rows)
        values = table.columns.get(column.field_id)
        if values is None:
            return [("-".rjust(column.width + 1) + " ", "exact")] * len(rows)
        tiers = table.tiers.get(column.field_id)
        codes = [int(column.tier)] * len(rows) if tiers is None else tiers[rows].tolist()
        if column.as_text:
            return [
                self._worded(column, *each) for each in zip(values[rows].tolist(), codes, rows.tolist(), strict=True)
            ]
        return list(map(functools.partial(self._cell, column), values[rows].tolist(), codes))

    def _trend_cells(self, column: GridColumn, table: FrameTable, rows: NDArray[np.intp]) -> list[tuple[str, str]]:
        """Draw the histories of rows, marked by the largest of each."""
        if self._trends is None:
            return [(" " * (column.width + _MARKS), "exact")] * len(rows)
        keys = [table.rows.keys[row] for row in rows.tolist()]
        glyphs, cells = self._style.glyphs, []
        for values in self._trends.of(keys, column.trend_of, column.width):
            largest = float(np.fmax.reduce(values, initial=-math.inf))
            level = 0 if column.hot is None else column.hot.level(largest)
            mark, style = ((" ", "trend"), (glyphs.warm, "warm"), (glyphs.hot, "hot"))[level]
            cells.append((f"{mark}{trend_text(values, glyphs.trend)} ", style))
        return cells

    def _worded(self, column: GridColumn, value: float, tier: int, row: int) -> tuple[str, str]:
        """Draw the arrangement's text for a cell, with the marks of its figure."""
        cell_text = self._arrangement.cell_text(column.field_id, row)
        if cell_text is None:
            return self._cell(column, value, tier)
        heat, glyphs = column.hot, self._style.glyphs
        warmth = 0 if heat is None else (value >= heat.warm) + (value >= heat.hot)
        text = (" ", glyphs.warm, glyphs.hot)[warmth] + cell_text
        text = fit(text, column.width, glyphs.ellipsis) if column.align == "left" else text.rjust(column.width)
        style = (_TIER_STYLES[tier], "warm", "hot")[warmth]
        return f" {text}{glyphs.tier_marks[tier]}", style

    def _cell(self, column: GridColumn, value: float, tier: int) -> tuple[str, str]:
        text, width, heat = column.format(value), column.width + 1, column.hot
        if value != value:  # noqa: PLR0124 - the fastest test for NaN
            return text.rjust(width) + " ", _TIER_STYLES[tier]
        mark = self._style.glyphs.tier_marks[tier]
        if heat is None or value < heat.warm:
            return text.rjust(width) + mark, _TIER_STYLES[tier]
        if value < heat.hot:
            return (self._style.glyphs.warm + text).rjust(width) + mark, "warm"
        return (self._style.glyphs.hot + text).rjust(width) + mark, "hot"


_TIER_STYLES = tuple(tier.name.lower() for tier in (Tier.EXACT, Tier.KERNEL, Tier.SAMPLED, Tier.EXACT, Tier.EXACT))
"""Style by tier code; adjacent cells of one tier form one segment, to keep repaints small."""


def _strip(
    runs: Sequence[tuple[str, str]], layout: GridLayout, styles: Mapping[str, Style], filler: str, right_edge: str = ""
) -> Strip:
    """Join runs to a strip of the full width; adjacent runs of one style are merged, as every segment has a cost."""
    if layout.width < _GUTTER:
        return Strip([], 0)
    segments: list[Segment] = []
    text, style_name = "", runs[0][1]
    for run_text, run_style in runs:
        if run_style == style_name:
            text += run_text
        else:
            segments.append(Segment(text, styles[style_name]))
            text, style_name = run_text, run_style
    segments.append(Segment(text, styles[style_name]))
    if layout.rest:
        segments.append(Segment(right_edge.rjust(layout.rest), styles[filler]))
    return Strip(segments, layout.width)
