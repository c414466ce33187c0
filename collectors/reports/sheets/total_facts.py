"""Totals since counters were cleared, as facts."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.kernel.hotplug_changes import size_text
from collectors.reports.sheets.history_facts import SECOND_NS, duration_text
from collectors.reports.sheets.sheet import SheetFact, SheetSection, fact
from collectors.reports.totals.between import LevelTotals
from collectors.session.time_format import iso_time

NO_COUNTER = "the kernel has no such counter here"


def totals_section(title: str, totals: LevelTotals | None, reason: str) -> SheetSection:
    """Make the section of totals; `reason` says why there are none."""
    if totals is None:
        return SheetSection(title, (fact("totals", None, reason),))
    return SheetSection(title, tuple(_facts(totals)))


def _facts(totals: LevelTotals) -> Iterator[SheetFact]:
    yield fact("cleared", f"{iso_time(totals.since_ns)}, {duration_text(round(totals.elapsed_s * SECOND_NS))} ago")
    yield fact("I/Os", _ios(totals), "no I/O is counted")
    yield fact("bytes", _bytes(totals), "no I/O is counted")
    for title, value in (
        ("errors", totals.errors),
        ("timeouts", totals.timeouts),
        ("retries", totals.retries),
        ("failovers", totals.failovers),
    ):
        yield fact(title, None if value is None else f"{value:,}", NO_COUNTER)
    latency = totals.max_latency_ns
    yield fact("max latency", None if latency is None else f"{latency / 1e6:.3f} ms", totals.latency_reason)


def _ios(totals: LevelTotals) -> str | None:
    if totals.reads is None or totals.writes is None:
        return None
    return f"{totals.reads + totals.writes:,}: {totals.reads:,} reads, {totals.writes:,} writes"


def _bytes(totals: LevelTotals) -> str | None:
    if totals.read_bytes is None or totals.write_bytes is None:
        return None
    return f"{size_text(totals.read_bytes)} read, {size_text(totals.write_bytes)} written"
