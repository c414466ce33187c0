"""Columns of the path screen: their order, and those that are not in the field registry."""

from __future__ import annotations

from dataclasses import replace

from collectors.field import Thresholds, Unit
from collectors.model import Tier
from collectors.paths.rollup import ONLY_OF_PORTS
from collectors.registry import fields_of
from tui.paths.board import STATE, STATE_ROOM, VERDICT
from tui.paths.layout import SICK, UNEVEN
from tui.text.columns import GridColumn, grid_columns
from tui.text.format import format_integer

FIRST_COLUMNS = ("iops", "await_ms", "queue_ms", "service_ms", "busy_pct")
"""Most important columns; with the state they fit into 80 cells."""
NEXT_COLUMNS = ("lun_share_pct", "in_flight", "limit_pct", "bytes_per_s")
STATE_WIDTH, VERDICT_WIDTH, RANGE_WIDTH = STATE_ROOM + 1, 64, 6


def path_columns() -> tuple[GridColumn, ...]:
    """State, the most important figures, the verdict, then all other fields of paths and ports."""
    chosen = (*FIRST_COLUMNS, *NEXT_COLUMNS)
    rest = tuple(field.id for field in fields_of("paths") if field.id not in chosen)
    figures = {column.field_id: column for column in grid_columns("paths", (*chosen, *rest))}
    figures["busy_pct"] = replace(figures["busy_pct"], width=RANGE_WIDTH, as_text=True)
    shown_otherwise = {"busy_low_pct", "busy_high_pct", "paths"}
    of_ports = tuple(field_id for field_id in ONLY_OF_PORTS if field_id not in shown_otherwise)
    return (
        state_column(),
        *(figures[field_id] for field_id in chosen),
        _text_column(VERDICT, "Verdict", VERDICT_WIDTH),
        *(figures[field_id] for field_id in rest),
        *grid_columns("hbas", of_ports),
    )


def state_column() -> GridColumn:
    """Make the column of states as text, marked if they are bad."""
    return _text_column(STATE, "State", STATE_WIDTH, Thresholds(UNEVEN, SICK))


def _text_column(field_id: str, title: str, width: int, marks: Thresholds | None = None) -> GridColumn:
    return GridColumn(
        field_id, title, width, lambda value: format_integer(value, width), Unit.COUNT, Tier.NONE, "left", marks, True
    )
