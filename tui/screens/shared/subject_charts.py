"""Charts of the row under the cursor, for screens whose table leaves room."""

from __future__ import annotations

import numpy as np
from textual.app import ComposeResult
from textual.containers import Grid as Cells

from collectors.model import Frame
from collectors.series import Series
from collectors.tables.block.all_disks import ALL_DISKS
from engine.replacing import replace
from engine.text import safe_text
from tui.app_state import AppState
from tui.screens.shared.chart_curves import AWAIT, IN_FLIGHT, IOPS, TAIL, THROUGHPUT, draw
from tui.text.safe import disk_labels
from tui.widgets.chart.widget import Chart

_TAIL = replace(TAIL, fields=("p99_ms", "max_ms"))
"""Series beside a chart of await."""
PANELS = (AWAIT, _TAIL, IOPS, THROUGHPUT, IN_FLIGHT)
_LINES_AROUND = 4
"""Half of the lines of a screen besides table and charts."""


class SubjectCharts(Cells):
    """Await, the highest latencies, IOPS, throughput and I/Os in flight of one row; on tall screens only."""

    DEFAULT_CSS = """
    SubjectCharts { display: none; height: 1fr; min-height: 12; grid-size: 2 2; grid-gutter: 0 1; }
    SubjectCharts Chart { width: 1fr; height: 1fr; }
    SubjectCharts #tail { display: none; }
    SubjectCharts.wide { grid-size: 3 2; }
    SubjectCharts.wide #await { column-span: 2; }
    SubjectCharts.wide #tail { display: block; }
    SubjectCharts.wide.tailless #await { column-span: 3; }
    SubjectCharts.wide.tailless #tail { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._time_to_mark_ns: int | None = None
        """Set while there was no room for the charts."""

    def compose(self) -> ComposeResult:
        """Compose the charts."""
        yield from (panel.make() for panel in PANELS)

    def show(self, app_state: AppState, frame: Frame, row: tuple[str, str] | None) -> None:
        """Show the history of a row of a frame table, given as table and key; None for a row without a history."""
        self.set_class(self.screen.has_class("-wide"), "wide")
        if not self.display:
            return
        series, name = None, ""
        if row is not None:
            series = app_state.history.series(*row, frame.time_ns, app_state.span_ns)
            self.set_class(not _has_tail(series), "tailless")
            name = "all disks" if row[0] == ALL_DISKS else _name(frame, *row)
        for panel in PANELS:
            chart = self.query_one(f"#{panel.id}", Chart)
            if chart.display:
                chart.set_title(panel.title, of=name)
                # The sum of all disks has the fields of a disk.
                fields_of = "disks" if row is None or row[0] == ALL_DISKS else row[0]
                draw(chart, series, replace(panel, table=fields_of), app_state)
        if self._time_to_mark_ns is not None:
            self.inspect(self._time_to_mark_ns)

    def inspect(self, time_ns: int | None) -> None:
        """Mark a time in all charts, and give the figures of then; once they are shown if they are not."""
        self._time_to_mark_ns = None if self.display else time_ns
        for chart in self.query(Chart):
            chart.inspect(time_ns)

    def most_rows(self, height: int) -> int | None:
        """Lines that a table above the charts may have on a screen of this height; None without charts."""
        return height // 2 - _LINES_AROUND if self.display else None


def _has_tail(series: Series | None) -> bool:
    """Whether anything but the mean is known of the latencies."""
    return series is not None and any(
        np.isfinite(series.values[field_id]).any() for field_id in _TAIL.fields if field_id in series.values
    )


def _name(frame: Frame, table: str, key: str) -> str:
    """Name of a row, with the alias of its device if there is one."""
    label = disk_labels(frame.topology).get(key)
    figures = frame.tables.get(table)
    row = None if figures is None else figures.rows.positions.get(key)
    return safe_text(label or ("" if figures is None or row is None else figures.rows.names[row]))
