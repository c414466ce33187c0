"""What the registry offers for the table of a grid: columns, fields of its filter, and which rows are active."""

from __future__ import annotations

from collections.abc import Sequence

from collectors.filtering.fields import FilterField, figures_of
from collectors.registry import TABLES, fields_of, subject_of
from collectors.subject import Active, any_above
from tui.text.columns import GridColumn, grid_columns

_DID_IO = any_above("iops", "in_flight")


def offered_columns(table: str, columns: Sequence[GridColumn]) -> tuple[GridColumn, ...]:
    """Columns that can be chosen: those given, then all other fields of the table."""
    shown = {column.field_id for column in columns}
    rest = [field.id for field in fields_of(table) if field.id not in shown]
    return (*columns, *grid_columns(table, rest))


def filter_fields(table: str, columns: Sequence[GridColumn]) -> tuple[FilterField, ...]:
    """Figures that a filter can compare: those of the columns, then all other fields of the table."""
    # A column of texts without a unit has ranks in place of figures.
    shown = [column for column in columns if not column.trend_of and (column.unit or not column.as_text)]
    return (
        *(FilterField(column.field_id, column.title, column.unit) for column in shown),
        *figures_of(fields_of(table)),
    )


def active_of(table: str) -> Active:
    """Return the filter of rows that are not idle."""
    return subject_of(table).active if table in TABLES else _DID_IO
