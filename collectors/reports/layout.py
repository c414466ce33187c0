"""Columns of the text report: which fields, how wide, in which unit a person reads them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collectors.fields import TIER_MARKS, Unit, get_field
from collectors.model import FrameTable, Tier
from engine.text import safe_text

_FIGURES = ("iops", "bytes_per_s", "await_ms", "queue_ms", "service_ms", "in_flight")
_SPLIT = (
    "reads_per_s",
    "writes_per_s",
    "read_bytes_per_s",
    "write_bytes_per_s",
    "read_await_ms",
    "write_await_ms",
    "queue_ms",
    "service_ms",
    "in_flight",
)
_DISTRIBUTION = (
    "iops",
    "p50_ms",
    "p99_ms",
    "p999_ms",
    "service_max_ms",
    "queue_p99_ms",
    "queue_max_ms",
    "tag_wait_ms",
    "max_ms",
)
_BUSY = {
    "disks": ("busy_pct",),
    "paths": ("busy_pct", "lun_share_pct"),
    "hbas": ("busy_pct", "busy_low_pct", "busy_high_pct", "limit_pct"),
    "tapes": ("busy_pct",),
}
"""Busy of a port is a range where only the kernel's counters tell of it: paths may be busy at the same time."""

_NOT_OF_TAPES = frozenset({"queue_ms", "service_ms"})
"""The kernel does not split the time of tape commands."""

TITLES = {"disks": "disk", "paths": "path", "hbas": "port", "tapes": "tape"}
"""What stands over the names of a table."""


def report_fields(table: str, *, split: bool, distribution: bool = False) -> tuple[str, ...]:
    """Columns of a table in the report; those of disks fit into 80 but for the split ones.

    Args:
        table: its frame table.
        split: reads and writes apart.
        distribution: percentiles and largest latencies instead of means; tapes have none.
    """
    if distribution and table != "tapes":
        return _DISTRIBUTION
    figures: tuple[str, ...] = _SPLIT if split else _FIGURES
    if table == "tapes":
        figures = (*(field_id for field_id in figures if field_id not in _NOT_OF_TAPES), "others_per_s")
    return (*figures, *_BUSY[table])


LEGEND = "~ sampled (estimate), : kernel counters, - not known; exact bears no mark"

_NAME_WIDTH, _NAME_LIMIT = 8, 32
_READ_AS = {
    Unit.PER_SECOND: ("1/s", 1.0, 8),
    Unit.BYTES_PER_SECOND: ("KiB/s", 1024.0, 9),
    Unit.MILLISECONDS: ("ms", 1.0, 7),
    Unit.PERCENT: ("%", 1.0, 6),
    Unit.COUNT: ("", 1.0, 7),
    Unit.BYTES: ("KiB", 1024.0, 8),
}
"""Unit as printed, what a value is divided by, and the width of the column."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Lays out the lines of one table; a figure whose tier varies carries its mark behind it."""

    table: str
    fields: tuple[str, ...]
    names: tuple[str, ...]
    """What the rows are called, safe to print."""
    name_width: int

    @classmethod
    def of(cls, table: str, fields: tuple[str, ...], names: Sequence[str]) -> Layout:
        """Make the name column as wide as the names need, within reason."""
        safe = tuple(safe_text(name) for name in names)
        longest = max(map(len, safe), default=0)
        return cls(table, fields, safe, min(max(_NAME_WIDTH, longest), _NAME_LIMIT))

    def header(self, stamp: str, table: FrameTable) -> list[str]:
        """Two lines: titles, and their units below."""
        titles, units = [], []
        for field_id in self.fields:
            field = get_field(self.table, field_id)
            unit, _, width = _READ_AS[field.unit]
            mark = " " if field_id in table.tiers else ""
            titles.append(f" {field.title:>{width}}{mark}")
            units.append(f" {unit:>{width}}{mark}")
        return [self._line(stamp, TITLES[self.table], titles), self._line("", "", units)]

    def row(self, stamp: str, table: FrameTable, row: int) -> str:
        """Format one row."""
        cells = [self._cell(table, field_id, row) for field_id in self.fields]
        return self._line(stamp, _shortened(self.names[row]), cells)

    def _cell(self, table: FrameTable, field_id: str, row: int) -> str:
        unit = get_field(self.table, field_id).unit
        _, divisor, width = _READ_AS[unit]
        text = _number(table.value(field_id, row) / divisor, unit)
        codes = table.tiers.get(field_id)
        mark = "" if codes is None else TIER_MARKS[Tier(int(codes[row]))]
        return f" {text:>{width}}{mark}"

    def _line(self, stamp: str, name: str, cells: list[str]) -> str:
        return f"{stamp:<8} {name:<{self.name_width}}{''.join(cells)}".rstrip()


def shown_rows(table: FrameTable, *, all_disks: bool) -> list[int]:
    """Rows to report: disks that did I/O or hold some back, or all of them."""
    if all_disks:
        return list(range(len(table.rows)))
    active = np.zeros(len(table.rows), np.bool_)
    for field_id in ("iops", "discards_per_s", "flushes_per_s", "others_per_s", "in_flight"):
        if field_id in table.columns:
            active |= table.columns[field_id] > 0
    return [int(row) for row in np.flatnonzero(active)]


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME_LIMIT else f"{name[: _NAME_LIMIT - 1]}+"


def _number(value: float, unit: Unit) -> str:
    """Digits enough to tell values apart, in a width that holds."""
    if math.isnan(value):
        return "-"
    if unit is Unit.MILLISECONDS:
        decimals = 3 if value < 10 else 2 if value < 100 else 1
    else:
        decimals = 1 if value < 100_000 else 0
    return f"{value:.{decimals}f}"
