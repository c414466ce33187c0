"""Columns of the grids: what the field registry says, plus width, format and thresholds of heat."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from collectors.field import Field, Unit
from collectors.model import FrameTable, Tier
from collectors.registry import fields_of
from engine.errors import UsageError
from tui.text.format import format_count, format_integer, format_quantity


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From which value on a figure is worth a look (`warm`) and worth a call (`hot`), in the field's unit."""

    warm: float
    hot: float


@dataclass(frozen=True, slots=True)
class GridColumn:
    """How one field is shown in a grid; `width` is that of the figure, without the marks beside it."""

    field_id: str
    title: str
    width: int
    format: Callable[[float], str]
    unit: Unit
    tier: Tier
    align: Literal["left", "right"] = "right"
    hot: Thresholds | None = None
    words: bool = False
    """Whether the arrangement of the grid may have words in place of the figure, which then only sorts and marks."""


_UNIT_WIDTHS = {Unit.PERCENT: 4}
_WIDTH = 5

_INTEGERS = {"heat": 3, "pid": 7, "queue_depth": 4, "in_flight_peak": 5}
"""Fields whose fraction means nothing, with their widths."""

_COUNTED = {"paths", "queue_limit", "errors", "timeouts"}
"""Fields that count things, besides those that count new ones: whole numbers as long as they fit."""

_HOT = {
    "heat": Thresholds(50, 80),
    "busy_pct": Thresholds(70, 95),
    "queue_ms": Thresholds(2, 10),
    "service_ms": Thresholds(20, 50),
    "await_ms": Thresholds(20, 50),
    "read_await_ms": Thresholds(20, 50),
    "write_await_ms": Thresholds(20, 50),
    "p99_ms": Thresholds(50, 200),
    "p999_ms": Thresholds(100, 500),
    "max_ms": Thresholds(100, 500),
    "errors_per_s": Thresholds(0.001, 0.001),
    "load.errors": Thresholds(1, 1),
    "load_total.errors": Thresholds(1, 1),
    "new_timeouts": Thresholds(1, 1),
    "new_errors": Thresholds(1, 10),
    "new_failovers": Thresholds(1, 10),
    "new_command_errors": Thresholds(1, 10),
    "new_link_errors": Thresholds(1, 10),
    "new_frame_errors": Thresholds(1, 10),
    "new_resets": Thresholds(1, 1),
    "new_reconnects": Thresholds(1, 1),
}
"""Rules of thumb of the trade (VMware: device latency above 20-25 ms, kernel queue above 1-2 ms)."""


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


def _column(field: Field) -> GridColumn:
    width = _INTEGERS.get(field.id) or _UNIT_WIDTHS.get(field.unit, _WIDTH)
    width = max(width, len(field.title))
    formatter: Callable[[float], str]
    if field.id in _INTEGERS:
        formatter = functools.partial(format_integer, width=width)
    elif field.id in _COUNTED or field.id.startswith("new_"):
        formatter = functools.partial(format_count, width=width)
    else:
        formatter = functools.partial(format_quantity, unit=field.unit, width=width)
    thresholds = _HOT.get(f"{field.table}.{field.id}", _HOT.get(field.id))
    return GridColumn(field.id, field.title, width, formatter, field.unit, field.tier, "right", thresholds)


def hot_rows(table: FrameTable) -> NDArray[np.bool_]:
    """Rows of which any figure is worth a call."""
    hot = np.zeros(len(table.rows), np.bool_)
    with np.errstate(invalid="ignore"):
        for field_id, thresholds in _HOT.items():
            if field_id in table.columns:
                hot |= table.columns[field_id] >= thresholds.hot
    return hot
