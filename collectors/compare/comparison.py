"""Comparison of two sides: a verdict for each figure of each row that both have."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec import field as msgspec_field

from collectors.compare.measures import compared_fields, main_fields
from collectors.compare.side import Figure, Side, SideRow, matched
from collectors.field import Field, Unit
from collectors.registry import subject_of
from engine.statistics.anytime import AnytimeDifference, anytime_percentile_difference
from engine.statistics.difference import (
    LEAST_VALUES,
    DifferenceInterval,
    estimate,
    values_needed,
    welch_interval,
)
from engine.statistics.percentile_difference import percentile_difference, values_for
from engine.statistics.verdict import Verdict, judge
from engine.text import three_digits


class CompareOptions(Struct, frozen=True):
    """What to compare, and what counts as a difference."""

    delta: float = 0.05
    """Largest difference that does not matter, as a share of A."""
    confidence: float = 0.95
    fields: tuple[str, ...] = ()
    """Field ids; empty: those of reports and grids."""
    every: bool = False
    """All fields, and rows without I/O."""
    floors: Mapping[Unit, float] = msgspec_field(default_factory=dict)
    """Largest differences that never matter, by unit; others are those of the fields."""

    def margin(self, field: Field, of_a: float) -> float:
        """Largest difference of a figure that does not matter, in its unit."""
        return max(self.delta * abs(of_a), field.least_change(self.floors))


class Needed(Struct, frozen=True):
    """What an undecided figure lacks."""

    side: str
    """A or B: the one with fewer intervals."""
    intervals: float
    """About how many more intervals are needed."""


class FieldComparison(Struct, frozen=True):
    """One figure of one row."""

    field: Field
    a: Figure
    b: Figure
    interval: DifferenceInterval | None
    """Interval of B minus A, in the unit of the field; None if nothing is known about the noise."""
    verdict: Verdict
    reason: str = ""
    """Why it is undecided; empty if it is decided."""
    needed: Needed | None = None
    """What would decide it, where that can be computed."""

    @property
    def difference(self) -> float:
        """B minus A."""
        return self.b.mean - self.a.mean

    def relative(self, amount: float) -> float:
        """Give an amount as a share of A; NaN where that is 0."""
        return amount / abs(self.a.mean) if self.a.mean else math.nan


class RowComparison(Struct, frozen=True, eq=False):
    """One disk, path, port or target."""

    a: SideRow
    b: SideRow
    fields: tuple[FieldComparison, ...]


class Comparison(Struct, frozen=True, eq=False):
    """Both sides, and what they have in common."""

    a: Side
    b: Side
    options: CompareOptions
    rows: tuple[RowComparison, ...]
    idle: int
    """Rows that both have, without any I/O, left out."""
    only_a: tuple[SideRow, ...] = ()
    """Rows without a partner in B."""
    only_b: tuple[SideRow, ...] = ()

    @property
    def verdicts(self) -> Mapping[Verdict, int]:
        """How many figures have each verdict."""
        found = Counter(field.verdict for row in self.rows for field in row.fields)
        return {verdict: found[verdict] for verdict in Verdict}


LIVE_BATCH = 10
"""Intervals in a batch while a recording grows; values of several intervals make shorter batches of them."""


def compare(a: Side, b: Side, options: CompareOptions) -> Comparison:
    """Compare every row that both sides have."""
    found = matched(a.rows, b.rows)
    pairs = [pair for pair in found if not _is_repeated(pair[0], a.rows)]
    shown = [pair for pair in pairs if options.every or pair[0].is_active or pair[1].is_active]
    rows = tuple(RowComparison(*pair, tuple(_fields(*pair, a, b, options))) for pair in shown)
    only_a, only_b = (
        _without_partner(side.rows, {pair[at].key_in_table for pair in found}) for at, side in ((0, a), (1, b))
    )
    return Comparison(a, b, options, tuple(row for row in rows if row.fields), len(pairs) - len(shown), only_a, only_b)


def _without_partner(rows: Sequence[SideRow], matched_keys: set[tuple[str, str]]) -> tuple[SideRow, ...]:
    return tuple(row for row in rows if row.is_active and row.key_in_table not in matched_keys)


def _is_repeated(row: SideRow, rows: Sequence[SideRow]) -> bool:
    """Whether another row has the same figures: the only target of a load, or a disk that is its own only path."""
    if row.table == "load":
        return sum(other.table == "load" for other in rows) == 1
    return (
        row.table == "paths"
        and any(other.table == "disks" and other.key == row.key for other in rows)
        and (sum(other.identity == row.identity for other in rows if other.table == "paths") == 1)
    )


def _fields(row_a: SideRow, row_b: SideRow, a: Side, b: Side, options: CompareOptions) -> Iterator[FieldComparison]:
    for field in wanted_fields(row_a.table, options):
        one, other = row_a.figures.get(field.id), row_b.figures.get(field.id)
        if one is None or other is None or math.isnan(one.mean) or math.isnan(other.mean):
            continue
        if one.mean == other.mean == 0 and not options.every:
            continue
        yield _Judged(field, row_a, row_b, a, b, options).comparison(one, other)


def wanted_fields(table: str, options: CompareOptions) -> tuple[Field, ...]:
    """Fields of a table to compare."""
    subject = subject_of(table)
    if options.fields:
        return tuple(field for field in compared_fields(subject) if field.id in options.fields)
    return compared_fields(subject) if options.every else main_fields(subject)


class _Judged(Struct, frozen=True, eq=False):
    """How one figure of one pair of rows is judged."""

    field: Field
    row_a: SideRow
    row_b: SideRow
    side_a: Side
    side_b: Side
    options: CompareOptions

    def comparison(self, a: Figure, b: Figure) -> FieldComparison:
        reason = self._incomparable(a, b)
        interval = None if reason else self._interval(a, b)
        if interval is None:
            reason, needed = (reason, None) if reason else self._too_little(a, b)
            return FieldComparison(self.field, a, b, None, Verdict.UNDECIDED, reason, needed)
        interval = _possible(interval, a.mean)
        margin = self.options.margin(self.field, a.mean)
        verdict = judge(interval, margin, self.field.improves)
        if verdict is not Verdict.UNDECIDED:
            return FieldComparison(self.field, a, b, interval, verdict)
        return FieldComparison(self.field, a, b, interval, verdict, *self._undecided(interval, margin, a, b))

    @property
    def _is_growing(self) -> bool:
        return self.side_a.growing or self.side_b.growing

    def _incomparable(self, a: Figure, b: Figure) -> str:
        for side, figure in ((self.side_a, a), (self.side_b, b)):
            if not side.intervals and figure.estimate is None:
                return f"the result of a {side.kind} holds no intervals of it: compare recordings"
        if a.tier and b.tier and a.tier is not b.tier:
            return f"{a.tier.name.lower()} in A, {b.tier.name.lower()} in B"
        lengths = self.side_a.interval_s, self.side_b.interval_s
        if self.field.peak and all(lengths) and abs(lengths[0] - lengths[1]) > 0.1 * max(lengths):
            return f"peaks of intervals of {three_digits(lengths[0])} s and of {three_digits(lengths[1])} s"
        if self.field.peak and a.per_value != b.per_value:
            return "peaks of recordings of very different length"
        return ""

    def _interval(self, a: Figure, b: Figure) -> DifferenceInterval | None:
        confidence = self.options.confidence
        percentile = self.field.percentile
        if percentile is not None and percentile[1] in self.row_a.histograms:
            percent, distribution = percentile
            other = self.row_b.histograms.get(distribution)
            if other is None:
                return None
            difference = anytime_percentile_difference if self._is_growing else percentile_difference
            return difference(self.row_a.histograms[distribution], other, percent, confidence)
        if self._is_growing:
            return _anytime(a, b, confidence)
        estimates = [figure.estimate or estimate(figure.values, figure.weights) for figure in (a, b)]
        if estimates[0] is None or estimates[1] is None:
            return None
        return welch_interval(estimates[0], estimates[1], confidence)

    def _too_little(self, a: Figure, b: Figure) -> tuple[str, Needed | None]:
        percentile = self.field.percentile
        if percentile is not None:
            least = values_for(percentile[0])
            for name, row in (("A", self.row_a), ("B", self.row_b)):
                blocks = row.histograms.get(percentile[1])
                if blocks is not None and blocks.ios < least:
                    return f"needs {least:,} I/Os, {name} has {blocks.ios:,}", None
        name, count = _shorter(a, b)
        least = LEAST_VALUES if not self._is_growing else 10 * LEAST_VALUES // 2
        return f"{name} needs {_more(least - count)}", Needed(name, max(least - count, 1))

    def _undecided(
        self, interval: DifferenceInterval, margin: float, a: Figure, b: Figure
    ) -> tuple[str, Needed | None]:
        name, values = _shorter(a, b)
        if not values:
            return "the interval is not shorter: measure longer", None
        needed = values_needed(interval, margin, values)
        if needed is None or needed > 100 * values:
            return "the change is about as large as delta", None
        more = float(f"{needed - values:.2g}")
        return f"needs about {_more(more)}", Needed(name, max(more, 1.0))


def _possible(interval: DifferenceInterval, of_a: float) -> DifferenceInterval:
    """Cut off what no figure can be: none falls below 0."""
    lowest = -abs(of_a)
    return DifferenceInterval(interval.difference, max(interval.low, lowest), max(interval.high, lowest))


def _shorter(a: Figure, b: Figure) -> tuple[str, int]:
    """Name the side with fewer intervals in which its figure is known, and their number."""
    counts = {name: int((figure.weights > 0).sum()) * figure.per_value for name, figure in (("A", a), ("B", b))}
    name = min(counts, key=lambda side: counts[side])
    return name, counts[name]


def _more(intervals: float) -> str:
    return "1 more interval" if intervals <= 1 else f"{intervals:,.0f} more intervals"


def _anytime(a: Figure, b: Figure, confidence: float) -> DifferenceInterval | None:
    """Interval for recordings that are compared again and again while they grow."""
    lengths = (max(LIVE_BATCH // figure.per_value, 1) for figure in (a, b))
    live = AnytimeDifference(confidence, *lengths)
    for add, figure in ((live.add_a, a), (live.add_b, b)):
        usual = float(np.mean(figure.weights[figure.weights > 0])) if (figure.weights > 0).any() else 1.0
        for value, weight in zip(figure.values, figure.weights / usual, strict=True):
            add(float(value), float(weight))
    return live.interval
