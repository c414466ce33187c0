"""The tables of a comparison in 80 columns, as `lunscope compare` prints them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator

from collectors.compare.collected import PERCENTS
from collectors.compare.comparison import Comparison, FieldComparison, RowComparison
from collectors.compare.side import Side, SideRow, Spread
from collectors.field import TIER_MARKS, Unit
from collectors.model import Tier
from collectors.registry import subject_of
from collectors.reports.page import LEGEND
from collectors.session.time_format import clock_text
from engine.statistics.verdict import Verdict
from engine.statistics.warmup import Trend
from engine.text import safe_text, short_text, three_digits

WIDTH = 80
_SHOWN_AS = {
    Unit.PER_SECOND: ("1/s", 1.0),
    Unit.BYTES_PER_SECOND: ("KiB/s", 1024.0),
    Unit.MILLISECONDS: ("ms", 1.0),
    Unit.PERCENT: ("%", 1.0),
    Unit.COUNT: ("", 1.0),
    Unit.BYTES: ("KiB", 1024.0),
}


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """Write a whole comparison."""
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        yield from _side_lines(name, side)
    for row in comparison.rows:
        yield ""
        yield from _row_lines(comparison, row)
    yield ""
    yield from _summary(comparison)


def _side_lines(name: str, side: Side) -> Iterator[str]:
    yield f"{name}  {short_text(safe_text(side.text), 40)}"
    facts = []
    if side.start_ns is not None and side.end_ns is not None:
        chosen = f" ({side.words})" if side.words else ""
        facts.append(f"{clock_text(side.start_ns)} to {clock_text(side.end_ns)}{chosen}")
        facts.append(f"{side.intervals:,} intervals of {three_digits(side.interval_s)} s")
        facts.append(side.tier.name.lower())
    else:
        facts.append(f"result of a {side.kind}{', ' if side.words else ''}{side.words}")
    if side.growing:
        facts.append("still being recorded: intervals are valid at any time")
    yield from _wrapped(", ".join(facts), "   ")


def _row_lines(comparison: Comparison, row: RowComparison) -> Iterator[str]:
    other = "" if row.a.name == row.b.name else f", in B {row.b.name}"
    yield from _wrapped(f"{subject_of(row.a.table).title} {row.a.name}{other}", "")
    for name, each in (("A", row.a), ("B", row.b)):
        yield from _wrapped_if(_steadiness(name, each))
    confidence = f"{100 * comparison.options.confidence:g} % interval"
    yield f"{'':18} {'A':>10} {'B':>10} {'change':>8} {confidence:>18}  verdict"
    for field in row.fields:
        yield _field_line(field)
    yield from _reasons(row)
    for title, spread in row.a.spreads.items():
        if title in row.b.spreads:
            yield from _spread_lines(title, spread, row.b.spreads[title])


def _steadiness(name: str, row: SideRow) -> str:
    if row.cut_s:
        return f"{name}: the first {three_digits(row.cut_s)} s are left out: {row.trend.value}"
    if row.trend is Trend.NONE:
        return ""
    return f"{name}: caution: {row.trend.value} all the time, so the difference may be one of time"


def _field_line(found: FieldComparison) -> str:
    unit, divisor = _SHOWN_AS[found.field.unit]
    tier = marked_tier(found)
    title = f"{found.field.title}{TIER_MARKS[tier]}".rstrip()
    a, b = (_figure(figure.mean / divisor) for figure in (found.a, found.b))
    change, interval = change_text(found), interval_text(found)
    return fitting(f"{title:<12} {unit:<5} {a:>10} {b:>10} {change:>8} {interval:>18}  {found.verdict.value}")


def fitting(line: str) -> str:
    """Give up alignment, from the right, where a line would not fit: a figure is never cut."""
    while len(line) > WIDTH and "  " in line:
        before, _, after = line.rpartition("  ")
        line = f"{before} {after}"
    return line


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
    for reason, titles in reasons.items():
        yield from _wrapped(f"undecided: {', '.join(titles)}: {reason}", "  ")


def _spread_lines(title: str, a: Spread, b: Spread) -> Iterator[str]:
    heads = [f"p{percent:g}" for percent in PERCENTS]
    yield f"{f'{title}, ms':<18} " + "".join(f"{head:>10}" for head in (*heads, "max")) + f"{'I/Os':>11}"
    for name, spread in (("A", a), ("B", b)):
        values = [*(spread.percentiles.get(percent, math.nan) for percent in PERCENTS), spread.largest]
        ios = f"{spread.ios}" if spread.ios < 10**10 else f"{spread.ios:.2e}"
        yield f"{name:>18} " + "".join(f"{_figure(value):>10}" for value in values) + f"{ios:>11}"


def _summary(comparison: Comparison) -> Iterator[str]:
    options = comparison.options
    found = [f"{count} {_verdict_words(verdict)}" for verdict, count in comparison.verdicts.items() if count]
    within = f"delta {100 * options.delta:g} % of A, or the floor of its unit"
    yield from _wrapped(f"{', '.join(found) or 'no figures in common'}; {within}", "")
    if comparison.idle:
        yield from _wrapped(f"{comparison.idle} without I/O in A and B left out (--all shows them)", "")
    if {marked_tier(found) for row in comparison.rows for found in row.fields} & {Tier.SAMPLED, Tier.KERNEL}:
        yield LEGEND


def _verdict_words(verdict: Verdict) -> str:
    return "differ" if verdict is Verdict.DIFFERS else verdict.value


def _wrapped_if(text: str) -> Iterator[str]:
    if text:
        yield from _wrapped(text, "  ")


def _wrapped(text: str, indent: str) -> Iterator[str]:
    yield from textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ")
