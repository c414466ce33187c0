"""Rows of the table of a comparison: a line for each figure of each object, with its texts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from collectors.compare.comparison import Comparison, FieldComparison, Needed, RowComparison
from collectors.compare.side import Side
from collectors.field import Unit
from collectors.registry import subject_of
from collectors.reports.documents.comparison import change_text, interval_text, marked_tier
from engine.statistics.verdict import Verdict
from engine.text import safe_text, three_digits
from tui.screens.compare.compare_work import Compared
from tui.screens.compare.parts import TimePart
from tui.text.format import format_quantity, span_text

ORDERS = ("object", "verdict", "change")
_RANK = (Verdict.WORSE, Verdict.BETTER, Verdict.DIFFERS, Verdict.UNDECIDED, Verdict.EQUIVALENT)
_WIDTH = 6
_MOSTLY = 0.9
"""Share of a part from which on its intervals count as all of it."""


class CompareRow(Struct, frozen=True, eq=False):
    """One figure of one object in both parts."""

    row: RowComparison
    found: FieldComparison

    @property
    def key(self) -> tuple[str, str, str]:
        """What stays the same when figures change."""
        return self.row.a.table, self.row.a.key, self.found.field.id

    @property
    def name(self) -> str:
        """The object."""
        other = "" if self.row.a.name == self.row.b.name else f" / {self.row.b.name}"
        return f"{self.row.a.name}{other}"

    @property
    def title(self) -> str:
        """The figure and its unit."""
        field = self.found.field
        unit = "" if field.title.endswith(("/s", field.unit)) and field.unit else f" {field.unit}".rstrip()
        return f"{field.title}{unit}"

    def figure(self, value: float) -> str:
        """Write a value of A or B."""
        return format_quantity(value, self.found.field.unit, _WIDTH)

    def marked(self, marks: Sequence[str]) -> str:
        """Mark how the figures were obtained, where that differs by row."""
        return marks[int(marked_tier(self.found))]

    @property
    def change(self) -> str:
        """Difference B - A."""
        return change_text(self.found).replace(" %", "%")

    @property
    def interval(self) -> str:
        """Interval of the difference."""
        return interval_text(self.found).replace(" %", "%").replace(" to ", "..")


def compare_rows(comparison: Comparison, order: str) -> list[CompareRow]:
    """All rows in an order: by object, by verdict (worse first), or by size of the change."""
    rows = [CompareRow(row, found) for row in comparison.rows for found in row.fields]
    if order == "verdict":
        rows.sort(key=lambda row: _RANK.index(row.found.verdict))
    elif order == "change":
        rows.sort(key=lambda row: -_size(row.found))
    return rows


def _size(found: FieldComparison) -> float:
    share = abs(found.relative(found.difference))
    return -1.0 if math.isnan(share) else share


def side_text(name: str, side: Side, part: object) -> str:
    """Describe a side: its title, its time, the number and length of its intervals."""
    parts = [f"{name} {safe_text(side.text)}"]
    if isinstance(part, TimePart):
        parts.append(part.times)
    elif side.start_ns is not None and side.end_ns is not None:
        parts.append(TimePart("", side.start_ns, side.end_ns).times + (f" ({side.words})" if side.words else ""))
    parts.append(_measured_text(side))
    parts.append(f"{sum(row.is_active for row in side.rows)} objects")
    return ", ".join(parts)


def _measured_text(side: Side) -> str:
    """Count the intervals, and say for which time they are known where that is not all of it."""
    if not side.intervals:
        return f"result of a {side.kind}"
    text = f"{side.intervals:,} x {three_digits(side.interval_s)} s"
    if side.start_ns is None or side.end_ns is None:
        return text
    length_s = (side.end_ns - side.start_ns) / 1e9
    covered_s = side.intervals * side.interval_s
    is_whole = covered_s >= _MOSTLY * length_s or length_s - covered_s < 3 * side.interval_s
    return text if is_whole else f"{text} known of {span_text(length_s)}"


def summary_text(compared: Compared) -> str:
    """Verdicts by number, delta, confidence, and what is left out."""
    comparison = compared.comparison
    if comparison is None:
        return ""
    options = comparison.options
    counts = [f"{count} {verdict.value}" for verdict, count in comparison.verdicts.items() if count]
    parts = [", ".join(counts) or "no figure in common", f"delta {100 * options.delta:g} % of A"]
    kind = " at any time" if comparison.a.growing or comparison.b.growing else ""
    parts.append(f"{100 * options.confidence:g} % intervals{kind}")
    parts += [
        f"only in {name}: {_names([row.name for row in rows])}"
        for name, rows in (("A", comparison.only_a), ("B", comparison.only_b))
        if rows
    ]
    if comparison.idle:
        parts.append(f"{comparison.idle} idle left out")
    parts += [f"{subject_of(table).title} left out: too many (choose the table)" for table in compared.left_out]
    return "; ".join(parts)


def detail_text(row: CompareRow, compared: Compared) -> str:
    """One figure in words: both values, difference, interval, verdict, and what an undecided one lacks."""
    found, unit = row.found, row.found.field.unit
    words = f"{row.name} {found.field.title}: {_with_unit(found.a.mean, unit)} to {_with_unit(found.b.mean, unit)}"
    words += f", {_signed(found.difference, unit)}"
    if found.interval is not None:
        words += f" ({_signed(found.interval.low, unit)} to {_signed(found.interval.high, unit)})"
    reason = f": {reason_text(found, compared)}" if found.reason else ""
    return f"{words}: {found.verdict.value}{reason}"


def reason_text(found: FieldComparison, compared: Compared) -> str:
    """Say why a figure is undecided, with the time that would decide it where that can be computed."""
    comparison, needed = compared.comparison, found.needed
    if needed is None or comparison is None:
        return found.reason
    part, side = _of(needed, compared, comparison)
    goes_on = isinstance(part, TimePart) and part.end_ns is None
    more = _time_text(needed.intervals * side.interval_s)
    if goes_on and compared.request.live:
        return f"{needed.side} needs about {more} more"
    return f"{needed.side} would need about {more} more: choose a longer part"


def _of(needed: Needed, compared: Compared, comparison: Comparison) -> tuple[object, Side]:
    request = compared.request
    return (request.a, comparison.a) if needed.side == "A" else (request.b, comparison.b)


def _time_text(seconds: float) -> str:
    unit_s, unit = (1, "s") if seconds < 100 else (60, "min") if seconds < 6000 else (3600, "h")
    amount = float(f"{seconds / unit_s:.2g}")
    return f"{three_digits(amount)} {unit}"


def _with_unit(value: float, unit: Unit) -> str:
    return f"{format_quantity(value, unit, _WIDTH)} {unit}".rstrip()


def _signed(value: float, unit: Unit) -> str:
    return f"{'+' if value >= 0 else ''}{_with_unit(value, unit)}"


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
