"""Columns of the grids: fields of the registry, with width, format and thresholds."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from textual.content import Content
from textual.geometry import Size

from collectors.field import Field, Thresholds, Unit
from collectors.model import FrameTable, Tier
from collectors.registry import fields_of, subject_of
from engine.errors import UsageError
from engine.replacing import replace
from tui.text.format import format_count, format_integer, format_quantity
from tui.text.glyphs import Glyphs


class GridColumn(Struct, frozen=True):
    """How one field is shown in a grid; `width` is that of the figure, without its marks."""

    field_id: str
    title: str
    width: int
    format: Callable[[float], str]
    unit: Unit
    tier: Tier
    align: Literal["left", "right"] = "right"
    hot: Thresholds | None = None
    as_text: bool = False
    """Whether the arrangement may show text instead of the figure, which then only sorts and marks."""
    trend_of: str = ""
    """Field whose recent history the column draws in place of a figure."""


class UnitStyle(StrEnum):
    """How amounts and times are shown."""

    BINARY = "K, M, G of 1024 bytes; milliseconds"
    DECIMAL = "k, M, G of 1000 bytes; milliseconds"
    MICROSECONDS = "K, M, G of 1024 bytes; times below 10 ms in microseconds, as 250u"


_TEN_MS = 9.9995
_AMOUNTS = {Unit.BYTES, Unit.BYTES_PER_SECOND}


def in_units(column: GridColumn, style: UnitStyle) -> GridColumn:
    """Return a column that shows its figures in other units, as wide as before."""
    if style is UnitStyle.DECIMAL and column.unit in _AMOUNTS:
        return replace(column, format=functools.partial(format_quantity, unit=Unit.COUNT, width=column.width))
    if style is UnitStyle.MICROSECONDS and column.unit is Unit.MILLISECONDS:
        return replace(column, format=functools.partial(_microseconds, width=column.width))
    return column


def _microseconds(value_ms: float, width: int) -> str:
    """Format a time below 10 ms in microseconds, with the suffix u; the width of a column has four digits and it."""
    if not 0 < value_ms < _TEN_MS:
        return format_quantity(value_ms, Unit.MILLISECONDS, width)
    text = format_quantity(value_ms * 1e3, Unit.COUNT, width - 1)
    return f"{text}u"


_UNIT_WIDTHS = {Unit.PERCENT: 4}
_WIDTH = 5


def grid_columns(table: str, ids: Sequence[str]) -> tuple[GridColumn, ...]:
    """Columns of a frame table by field ids, most important first.

    Raises:
        UsageError: a field the table does not have; the text names those it has.
    """
    known = {field.id: field for field in fields_of(table)}
    unknown = [field_id for field_id in ids if field_id not in known]
    if unknown:
        raise UsageError(f"no field {unknown[0]!r} in table {table!r}; it has {', '.join(known)}")
    return tuple(_column(known[field_id]) for field_id in ids)


def default_columns(table: str) -> tuple[GridColumn, ...]:
    """Columns of a frame table that its subject names, most important first."""
    return grid_columns(table, subject_of(table).columns)


def _column(field: Field) -> GridColumn:
    width = max(field.digits or _UNIT_WIDTHS.get(field.unit, _WIDTH), len(field.title))
    formatter: Callable[[float], str]
    if field.digits:
        formatter = functools.partial(format_integer, width=width)
    elif field.counts:
        formatter = functools.partial(format_count, width=width)
    else:
        formatter = functools.partial(format_quantity, unit=field.unit, width=width)
    return GridColumn(field.id, field.title, width, formatter, field.unit, field.tier, "right", field.hot)


TREND = "trend"
"""Id of the column that draws a recent history."""
TREND_WIDTH = 12
_TRENDS = ("await_ms", "iops")
"""Fields whose history is drawn: the first that a table keeps."""


def trend_column(table: str) -> GridColumn:
    """Column with the recent history of the latency of each row of a table, or of its IOPS."""
    kept, fields = subject_of(table).charts, {field.id: field for field in fields_of(table)}
    field = next(fields[field_id] for field_id in _TRENDS if field_id in kept)
    return GridColumn(
        TREND,
        f"{field.title} trend",
        max(TREND_WIDTH, len(field.title) + len(" trend")),
        functools.partial(format_quantity, unit=field.unit, width=TREND_WIDTH),
        field.unit,
        Tier.NONE,
        hot=field.hot,
        trend_of=field.id,
    )


def with_trend(columns: Sequence[GridColumn], table: str, after: str) -> tuple[GridColumn, ...]:
    """Insert the column with the history after the one of a field: what is before it is shown first."""
    position = next((number for number, column in enumerate(columns, 1) if column.field_id == after), len(columns))
    return (*columns[:position], trend_column(table), *columns[position:])


_TREND_ROOM = 1.2
"""Room above the largest value, so that steady values do not fill their cells."""
TREND_HELP = "Recent history: a cell holds the largest of five samples, the newest at the right; a blank is not known."


def trend_text(values: NDArray[np.float64], glyphs: str) -> str:
    """Draw one row's history, a character per value: heights from 0 to a round number above the largest."""
    known = values[np.isfinite(values)]
    largest = float(known.max(initial=0.0))
    top = _round_top(largest * _TREND_ROOM)
    steps = len(glyphs) - 1
    chars = []
    for value in values.tolist():
        if not math.isfinite(value):
            chars.append(" ")
        else:
            chars.append(glyphs[min(steps, 1 + int(value / top * (steps - 1) + 0.5)) if value > 0 else 0])
    return "".join(chars)


def _round_top(largest: float) -> float:
    """Round up to 1, 2, 5, 10, ...: a scale that seldom changes."""
    if largest <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(largest))
    return next(mantissa * power for mantissa in (1.0, 2.0, 5.0, 10.0) if largest <= mantissa * power * (1 + 1e-9))


def hot_rows(table: FrameTable, fields: Iterable[Field]) -> NDArray[np.bool_]:
    """Rows in which any of these figures is at its `hot` threshold."""
    hot = np.zeros(len(table.rows), np.bool_)
    with np.errstate(invalid="ignore"):
        for field in fields:
            if field.hot is not None and field.id in table.columns:
                hot |= table.columns[field.id] >= field.hot.hot
    return hot


_PLAIN = {Unit.PER_SECOND, Unit.COUNT, Unit.BYTES}
"""Units that the title or the suffix already shows."""


def figure_lines(
    table: FrameTable, name: str, row: int, field_ids: Sequence[str], *, room: Size, glyphs: Glyphs
) -> Content:
    """Format title, value, tier mark and unit of the fields that have a value, within `room`.

    A figure at a threshold has its mark and colour, as in the tables.

    Args:
        table: any frame table.
        name: of the table.
        row: row of the table.
        field_ids: most important first; those without a figure are left out.
        room: cells per line, and lines; a figure that does not fit is left out, as a cut one reads as another value.
        glyphs: marks of tiers and thresholds.
    """
    written: list[Content] = [Content(" ")]
    for column in grid_columns(name, field_ids):
        if math.isnan(table.value(column.field_id, row)):
            continue
        part = _figure(table, row, column, glyphs)
        if written[-1].cell_length + part.cell_length > room.width:
            if len(written) >= room.height:
                break
            written.append(Content(" "))
        written[-1] += part
    return Content("\n").join(written)


def severity(value: float, hot: Thresholds | None, glyphs: Glyphs) -> tuple[str, str]:
    """Mark and style of a figure by its thresholds, both empty below them: the colour says no more than the mark."""
    level = 0 if hot is None else hot.level(value)
    return (("", ""), (glyphs.warm, "$warm"), (glyphs.hot, "bold $hot"))[level]


def _figure(table: FrameTable, row: int, column: GridColumn, glyphs: Glyphs) -> Content:
    codes, value = table.tiers.get(column.field_id), table.value(column.field_id, row)
    reached, style = severity(value, column.hot, glyphs)
    mark = glyphs.tier_marks[int(column.tier) if codes is None else int(codes[row])].strip()
    unit = "" if column.unit in _PLAIN or column.title.endswith(column.unit) else f" {column.unit}"
    return Content.assemble((f"{column.title} ", "dim"), (f"{reached}{column.format(value)}{mark}{unit}", style), "  ")
