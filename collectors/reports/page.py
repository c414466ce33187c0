"""Lines of the text report: banner, headers, a line per disk, averages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from collectors.latency.average_peaks import AveragePeaks
from collectors.model import Frame, FrameTable, HostFacts, Step, Topology
from collectors.registry import REPORTED, subject_of
from collectors.reports.layout import LEGEND, Layout, report_fields, report_of, shown_rows
from collectors.session.time_format import clock_text, iso_time
from engine.text import safe_text

_LONG_SECOND = 1.5
_TABLES = frozenset(subject.table for subject in REPORTED)


@dataclass(frozen=True, slots=True)
class PageOptions:
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
        yield from (f"{stamp} << {safe_text(event.text)} >>" for event in frame.events)
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
            yield f"{stamp} (no {self._subject.title}s known)"
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
