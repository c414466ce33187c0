"""The text report as it goes down the page: banner, headers, a line per disk, averages."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.model import Frame, FrameTable, HostFacts, Step
from collectors.moments import clock_text, iso_time
from collectors.report_layout import LEGEND, DiskLayout, shown_rows
from collectors.text import safe_text


class ReportPage:
    """Where a text report stands: what was printed last decides on banner and headers."""

    def __init__(self, fields: tuple[str, ...], header_every: int, *, all_disks: bool) -> None:
        self._fields = fields
        self._header_every = header_every
        self._all_disks = all_disks
        self._layout: DiskLayout | None = None
        self._keys: tuple[str, ...] = ()
        self._since_header = 0
        self._started = False

    def lines(self, step: Step, frame: Frame) -> Iterator[str]:
        """Lines of one step: its events and disks; the first of a report brings the banner."""
        stamp = clock_text(frame.time_ns)
        if not self._started:
            yield _banner(frame.topology.host, frame.time_ns)
            yield LEGEND
        yield from (f"{stamp} << {safe_text(event.text)} >>" for event in frame.events)
        disks = frame.tables.get("disks")
        if step.previous is not None and disks is not None:
            yield from self._disks(stamp, disks)
        elif self._started:
            yield f"{stamp} (gap)"
        self._started = True

    def averages(self, table: FrameTable) -> Iterator[str]:
        """Lines that close a report."""
        shown = shown_rows(table, all_disks=self._all_disks)
        if shown:
            layout = DiskLayout.of(self._fields, table.rows.names)
            yield ""
            yield from layout.header("Average:", table)
            yield from (layout.row("Average:", table, row) for row in shown)

    def _disks(self, stamp: str, table: FrameTable) -> Iterator[str]:
        layout = self._layout
        if layout is None or self._keys != table.rows.keys or self._since_header >= self._header_every:
            layout = self._layout = DiskLayout.of(self._fields, table.rows.names)
            self._keys, self._since_header = table.rows.keys, 0
            yield ""
            yield from layout.header(stamp, table)
        shown = shown_rows(table, all_disks=self._all_disks)
        if not shown:
            yield f"{stamp} (no I/O)"
        yield from (layout.row(stamp, table, row) for row in shown)
        self._since_header += max(1, len(shown))


def _banner(host: HostFacts, time_ns: int) -> str:
    date = (iso_time(time_ns) or "-").partition("T")[0]
    return safe_text(f"Linux {host.kernel} ({host.hostname})  {date}  {host.machine}  ({host.cpus} CPU)")
