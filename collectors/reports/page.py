"""The text report: its columns and units, and its lines: banner, headers, a line per disk, averages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from collectors.all_subjects import REPORTED
from collectors.field import TIER_MARKS, Unit
from collectors.latency.average_peaks import AveragePeaks
from collectors.model import Frame, FrameTable, HostFacts, Step, Tier, Topology
from collectors.paths.event_groups import event_groups
from collectors.registry import get_field, subject_of
from collectors.session.time_format import clock_text, iso_time
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


LEGEND = "~ estimate, : kernel counters, + at least, - not known; exact bears no mark"

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


def printed_unit(unit: Unit) -> str:
    """Return the unit in which figures of a report are written."""
    return _READ_AS[unit][0]


def figure_text(table: FrameTable, field_id: str, unit: Unit, row: int) -> tuple[str, str]:
    """Write a figure in the unit of reports, and its tier mark; the mark is empty if the field's tier does not vary."""
    text = _number(table.value(field_id, row) / _READ_AS[unit][1], unit)
    codes = table.tiers.get(field_id)
    return text, "" if codes is None else TIER_MARKS[Tier(int(codes[row]))]


class Layout(Struct, frozen=True):
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
        text, mark = figure_text(table, field_id, unit, row)
        return f" {text:>{_READ_AS[unit][2]}}{mark}"

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


_LONG_SECOND = 1.5
_TABLES = frozenset(subject.table for subject in REPORTED)


class PageOptions(Struct, frozen=True):
    """Display options of a text report."""

    split: bool
    """Reads and writes separately."""
    all_rows: bool
    """Also rows without I/O."""
    header_every: int
    """Lines after which a header is repeated."""
    distribution: bool = False
    """Percentiles and peaks instead of means."""


class ReportPage:
    """State of a text report: the last printed lines decide on banner and headers."""

    def __init__(self, tables: Sequence[str], options: PageOptions) -> None:
        self._sections = [PageSection(table, options) for table in tables]
        self._started = False
        self._measured = False

    def lines(self, step: Step, frame: Frame) -> Iterator[str]:
        """Yield the lines of one step: its events and figures, preceded by the banner on the first step."""
        stamp = clock_text(frame.time_ns)
        if not self._started:
            yield _banner(frame.topology.host, frame.time_ns)
            yield LEGEND
        yield from (f"{stamp} << {group.text} >>" for group in event_groups(frame.events))
        if step.previous is not None and not frame.tables.keys().isdisjoint(_TABLES):
            for section in self._sections:
                yield from section.lines(stamp, frame.tables, frame.topology)
                yield from (f"{stamp} {remark}" for remark in section.report.remarks(frame))
            self._measured = True
        elif self._measured:
            yield f"{stamp} (gap)"
        self._started = True

    def averages(self, tables: Mapping[str, FrameTable], topology: Topology) -> Iterator[str]:
        """Yield the averages at the end of a report."""
        for section in self._sections:
            yield from section.averages(tables, topology)

    def average_peaks(self, tables: Mapping[str, FrameTable], peaks: AveragePeaks, topology: Topology) -> Iterator[str]:
        """Lines of the average peak latency of all that had a peak."""
        for section in self._sections:
            table = tables.get(section.table)
            if table is not None and "max_ms" in table.columns:
                yield from section.average_peaks(table, peaks, topology)


class PageSection:
    """One subject of a report."""

    def __init__(self, table: str, options: PageOptions) -> None:
        self.table = table
        self._subject = subject_of(table)
        self.report = report_of(self._subject)
        self._options = options
        self._fields = report_fields(self.report, split=options.split, distribution=options.distribution)
        self._layout: Layout | None = None
        self._keys: tuple[str, ...] = ()
        self._since_header = 0

    def lines(self, stamp: str, tables: Mapping[str, FrameTable], topology: Topology) -> Iterator[str]:
        """Lines of one interval."""
        table = tables.get(self.table)
        if table is None:
            yield f"{stamp} (no {self._subject.plural} known)"
            return
        layout = self._layout
        if layout is None or self._keys != table.rows.keys or self._since_header >= self._options.header_every:
            layout = self._layout = self._layout_of(table, topology)
            self._keys, self._since_header = table.rows.keys, 0
            yield ""
            yield from layout.header(stamp, table)
        shown = shown_rows(self._subject, table, every=self._options.all_rows)
        if not shown:
            yield f"{stamp} (no I/O)"
        yield from (layout.row(stamp, table, row) for row in shown)
        self._since_header += max(1, len(shown))

    def averages(self, tables: Mapping[str, FrameTable], topology: Topology) -> Iterator[str]:
        """Yield the lines of the averages, none if nothing was shown."""
        table = tables.get(self.table)
        shown = [] if table is None else shown_rows(self._subject, table, every=self._options.all_rows)
        if table is not None and shown:
            layout = self._layout_of(table, topology)
            yield ""
            yield from layout.header("Average:", table)
            yield from (layout.row("Average:", table, row) for row in shown)

    def average_peaks(self, table: FrameTable, peaks: AveragePeaks, topology: Topology) -> Iterator[str]:
        """Yield the mean of the largest latency of each second, or of each longer recorded interval."""
        means_ms = peaks.of(self.table, table.rows)
        known = [row for row in range(len(table.rows)) if not math.isnan(means_ms[row])]
        if known:
            yield ""
            each = "second" if peaks.each_s < _LONG_SECOND else f"{peaks.each_s:.0f} seconds"
            yield f"Average peak latency (mean of the largest of each {each}):"
        labels = self._subject.labels(table.rows, topology)
        yield from (f"         {safe_text(labels[row])} {means_ms[row]:.3f} ms" for row in known)

    def _layout_of(self, table: FrameTable, topology: Topology) -> Layout:
        return Layout.of(self._subject, self._fields, self._subject.labels(table.rows, topology))


def _banner(host: HostFacts, time_ns: int) -> str:
    date = (iso_time(time_ns) or "-").partition("T")[0]
    return safe_text(f"Linux {host.kernel} ({host.hostname})  {date}  {host.machine}  ({host.cpus} CPU)")
