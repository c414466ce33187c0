"""The tables of a comparison, and its figures in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from collectors.compare.collected import PERCENTS
from collectors.compare.comparison import Comparison, FieldComparison, RowComparison
from collectors.compare.side import Side, SideRow, Spread
from collectors.field import TIER_MARKS, Unit
from collectors.model import Tier
from collectors.registry import subject_of
from collectors.reports.documents.content import Block, Bullets, DocumentTable, Facts, Paragraph, Section
from collectors.reports.page import LEGEND
from collectors.session.time_format import clock_text
from engine.statistics.verdict import Verdict
from engine.statistics.warmup import Trend
from engine.text import short_text, three_digits

_SHOWN_AS = {
    Unit.PER_SECOND: ("1/s", 1.0),
    Unit.BYTES_PER_SECOND: ("KiB/s", 1024.0),
    Unit.MILLISECONDS: ("ms", 1.0),
    Unit.PERCENT: ("%", 1.0),
    Unit.COUNT: ("", 1.0),
    Unit.BYTES: ("KiB", 1024.0),
}


def comparison_sections(comparison: Comparison) -> Iterator[Section]:
    """Describe a whole comparison."""
    sides = (("A", comparison.a), ("B", comparison.b))
    yield Section("Compared", (Facts(tuple((name, _side_words(side)) for name, side in sides)),))
    yield from (_row_section(comparison, row) for row in comparison.rows)
    yield Section("Verdicts", tuple(_summary(comparison)))


def _side_words(side: Side) -> str:
    facts = [short_text(side.text, 40)]
    if side.start_ns is not None and side.end_ns is not None:
        chosen = f" ({side.words})" if side.words else ""
        facts.append(f"{clock_text(side.start_ns)} to {clock_text(side.end_ns)}{chosen}")
        facts.append(f"{side.intervals:,} intervals of {three_digits(side.interval_s)} s")
        facts.append(side.tier.name.lower())
    else:
        facts.append(f"result of a {side.kind}{', ' if side.words else ''}{side.words}")
    if side.growing:
        facts.append("still being recorded: intervals are valid at any time")
    return ", ".join(facts)


def _row_section(comparison: Comparison, row: RowComparison) -> Section:
    other = "" if row.a.name == row.b.name else f", in B {row.b.name}"
    interval = f"{100 * comparison.options.confidence:g} % interval"
    head = (("", ""), ("unit", ""), ("A", ""), ("B", ""), ("change", ""), (interval, ""), ("verdict", ""))
    sides = {"A": row.a, "B": row.b}
    above = tuple(words for name, side in sides.items() if (words := _steadiness(name, side)))
    below = tuple(_reasons(row))
    both = [title for title in row.a.spreads if title in row.b.spreads]
    return Section(
        f"{subject_of(row.a.table).title} {row.a.name}{other}",
        (
            *([Bullets(above)] if above else []),
            DocumentTable("", head, tuple(map(_field_row, row.fields)), texts=2),
            *([Bullets(below)] if below else []),
            *(_spread_grid(title, {name: side.spreads[title] for name, side in sides.items()}) for title in both),
        ),
    )


def _steadiness(name: str, row: SideRow) -> str:
    if row.cut_s:
        return f"{name}: the first {three_digits(row.cut_s)} s are left out: {row.trend.value}"
    if row.trend is Trend.NONE:
        return ""
    return f"{name}: caution: {row.trend.value} all the time, so the difference may be one of time"


def _field_row(found: FieldComparison) -> tuple[str, ...]:
    unit, divisor = _SHOWN_AS[found.field.unit]
    title = f"{found.field.title}{TIER_MARKS[marked_tier(found)]}".rstrip()
    a, b = (_figure(figure.mean / divisor) for figure in (found.a, found.b))
    return (title, unit, a, b, change_text(found), interval_text(found), found.verdict.value)


def marked_tier(found: FieldComparison) -> Tier:
    """Return the lower tier of a figure, if the tier of its field varies."""
    tiers = [figure.tier for figure in (found.a, found.b) if figure.tier is not Tier.NONE]
    return min(tiers) if tiers and (found.a.varies or found.b.varies) else Tier.NONE


def change_text(found: FieldComparison) -> str:
    """Change from A to B in percent of A, or in the unit of the field where A is 0."""
    relative = found.relative(found.difference)
    if math.isnan(relative):
        return _signed(found.difference / _SHOWN_AS[found.field.unit][1])
    return f"{_signed_percent(relative)} %"


def interval_text(found: FieldComparison) -> str:
    """Interval of the change, likewise; a dash without one."""
    if found.interval is None:
        return "-"
    ends = (found.interval.low, found.interval.high)
    low, high = map(found.relative, ends)
    if math.isnan(low):
        divisor = _SHOWN_AS[found.field.unit][1]
        return " to ".join(_signed(end / divisor) for end in ends)
    return f"{_signed_percent(low)} to {_signed_percent(high)} %"


def _signed_percent(share: float) -> str:
    percent = 100 * share
    if abs(percent) >= 9999.5:
        return f"{percent:+.0e}"
    text = f"{percent:+.1f}" if abs(percent) < 999.5 else f"{percent:+.0f}"
    return text.replace("-0.0", "+0.0")


def _signed(value: float) -> str:
    return f"{'+' if value >= 0 else '-'}{_figure(abs(value))}"


def _figure(value: float) -> str:
    """Write a figure in at most 10 characters."""
    if math.isnan(value):
        return "-"
    if abs(value) >= 99_999_999:
        return f"{value:.3e}"
    decimals = 3 if abs(value) < 10 else 2 if abs(value) < 100 else 1 if abs(value) < 100_000 else 0
    return f"{value:.{decimals}f}"


def _reasons(row: RowComparison) -> Iterator[str]:
    """Say why figures are undecided, those with the same reason together."""
    reasons: dict[str, list[str]] = {}
    for found in row.fields:
        if found.reason:
            reasons.setdefault(found.reason, []).append(found.field.title)
    yield from (f"undecided: {', '.join(titles)}: {reason}" for reason, titles in reasons.items())


def _spread_grid(title: str, sides: Mapping[str, Spread]) -> DocumentTable:
    head = (("", ""), *((f"p{percent:g}", "ms") for percent in PERCENTS), ("max", "ms"), ("I/Os", ""))
    return DocumentTable(title, head, tuple(_spread_row(name, spread) for name, spread in sides.items()))


def _spread_row(name: str, spread: Spread) -> tuple[str, ...]:
    values = [*(spread.percentiles.get(percent, math.nan) for percent in PERCENTS), spread.largest]
    ios = f"{spread.ios}" if spread.ios < 10**10 else f"{spread.ios:.2e}"
    return (name, *map(_figure, values), ios)


def _summary(comparison: Comparison) -> Iterator[Block]:
    options = comparison.options
    found = [f"{count} {_verdict_words(verdict)}" for verdict, count in comparison.verdicts.items() if count]
    within = f"delta {100 * options.delta:g} % of A, or the floor of its unit"
    yield Paragraph(f"{', '.join(found) or 'no figures in common'}; {within}", important=True)
    if comparison.idle:
        yield Paragraph(f"{comparison.idle} without I/O in A and B left out (--all shows them)")
    if {marked_tier(found) for row in comparison.rows for found in row.fields} & {Tier.SAMPLED, Tier.KERNEL}:
        yield Paragraph(LEGEND)


def _verdict_words(verdict: Verdict) -> str:
    return "differ" if verdict is Verdict.DIFFERS else verdict.value
