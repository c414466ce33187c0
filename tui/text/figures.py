"""The figures of one row in a few lines of text, none of them cut."""

from __future__ import annotations

import math
from collections.abc import Sequence

from textual.content import Content
from textual.geometry import Size

from collectors.field import Unit
from collectors.model import FrameTable
from tui.text.columns import GridColumn, grid_columns

_PLAIN = {Unit.PER_SECOND, Unit.COUNT, Unit.BYTES}
"""Units that the title or the suffix already shows."""


def figure_lines(
    table: FrameTable, name: str, row: int, field_ids: Sequence[str], *, room: Size, marks: Sequence[str]
) -> Content:
    """Format title, value, tier mark and unit of the fields that have a value, within `room`.

    Args:
        table: any frame table.
        name: of the table.
        row: row of the table.
        field_ids: most important first; those without a figure are left out.
        room: cells per line, and lines; a figure that does not fit is left out, as a cut one reads as another value.
        marks: of the tiers.
    """
    written: list[Content] = [Content(" ")]
    for column in grid_columns(name, field_ids):
        if math.isnan(table.value(column.field_id, row)):
            continue
        part = _figure(table, row, column, marks)
        if written[-1].cell_length + part.cell_length > room.width:
            if len(written) >= room.height:
                break
            written.append(Content(" "))
        written[-1] += part
    return Content("\n").join(written)


def _figure(table: FrameTable, row: int, column: GridColumn, marks: Sequence[str]) -> Content:
    codes = table.tiers.get(column.field_id)
    mark = marks[int(column.tier) if codes is None else int(codes[row])].strip()
    unit = "" if column.unit in _PLAIN or column.title.endswith(column.unit) else f" {column.unit}"
    return Content.assemble(
        (f"{column.title} ", "dim"), f"{column.format(table.value(column.field_id, row))}{mark}{unit}  "
    )
