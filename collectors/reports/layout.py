"""Columns of the text report: fields, widths and display units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collectors.field import TIER_MARKS, Unit
from collectors.model import FrameTable, Tier
from collectors.registry import get_field
from collectors.subject import Report, Subject
from engine.text import safe_text


def report_of(subject: Subject) -> Report:
    """Return the report of a subject.

    Raises:
        KeyError: the subject has no report.
    """
    if subject.report is None:
        raise KeyError(subject.table)
    return subject.report


def report_fields(report: Report, *, split: bool, distribution: bool = False) -> tuple[str, ...]:
    """Columns of a subject in the report.

    Args:
        report: report of the subject.
        split: reads and writes separately.
        distribution: percentiles and largest latencies instead of means, if there are any.
    """
    if distribution:
        return report.distribution_columns
    return report.split_columns if split else report.columns


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
"""Printed unit, divisor of a value, and column width."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Formats the lines of one table; figures with a varying tier are followed by their tier mark."""

    subject: Subject
    fields: tuple[str, ...]
    names: tuple[str, ...]
    """Names of the rows, safe to print."""
    name_width: int

    @classmethod
    def of(cls, subject: Subject, fields: tuple[str, ...], names: Sequence[str]) -> Layout:
        """Make the name column as wide as the names, up to a limit."""
        safe = tuple(safe_text(name) for name in names)
        longest = max(map(len, safe), default=0)
        return cls(subject, fields, safe, min(max(_NAME_WIDTH, longest), _NAME_LIMIT))

    def header(self, stamp: str, table: FrameTable) -> list[str]:
        """Two lines: titles, and their units below."""
        titles, units = [], []
        for field_id in self.fields:
            field = get_field(self.subject.table, field_id)
            unit, _, width = _READ_AS[field.unit]
            mark = " " if field_id in table.tiers else ""
            titles.append(f" {field.title:>{width}}{mark}")
            units.append(f" {unit:>{width}}{mark}")
        return [self._line(stamp, self.subject.title, titles), self._line("", "", units)]

    def row(self, stamp: str, table: FrameTable, row: int) -> str:
        """Format one row."""
        cells = [self._cell(table, field_id, row) for field_id in self.fields]
        return self._line(stamp, _shortened(self.names[row]), cells)

    def _cell(self, table: FrameTable, field_id: str, row: int) -> str:
        unit = get_field(self.subject.table, field_id).unit
        _, divisor, width = _READ_AS[unit]
        text = _number(table.value(field_id, row) / divisor, unit)
        codes = table.tiers.get(field_id)
        mark = "" if codes is None else TIER_MARKS[Tier(int(codes[row]))]
        return f" {text:>{width}}{mark}"

    def _line(self, stamp: str, name: str, cells: list[str]) -> str:
        return f"{stamp:<8} {name:<{self.name_width}}{''.join(cells)}".rstrip()


def shown_rows(subject: Subject, table: FrameTable, *, every: bool) -> list[int]:
    """Rows to report: those with I/O or with I/O held back, or all of them."""
    if every:
        return list(range(len(table.rows)))
    return [int(row) for row in np.flatnonzero(subject.active(table))]


def _shortened(name: str) -> str:
    return name if len(name) <= _NAME_LIMIT else f"{name[: _NAME_LIMIT - 1]}+"


def _number(value: float, unit: Unit) -> str:
    """Format with enough digits to distinguish values, within the column width."""
    if math.isnan(value):
        return "-"
    if unit is Unit.MILLISECONDS:
        decimals = 3 if value < 10 else 2 if value < 100 else 1
    else:
        decimals = 1 if value < 100_000 else 0
    return f"{value:.{decimals}f}"
