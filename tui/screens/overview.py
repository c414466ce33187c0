"""The first screen: hot disks, their verdict and history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Grid as Cells
from textual.content import Content
from textual.geometry import Size

from collectors.derive.roles import present_disks
from collectors.hotness import hottest_of, verdict, with_hot_order
from collectors.latency.subjects import LatencySubject
from collectors.model import Frame, FrameTable
from collectors.registry import get_field
from engine.text import safe_text
from tui.app_state import AppState, traced_subject
from tui.history.subjects import ChartSubject, next_subject, row_of, trace_of
from tui.history.trends import rows_of
from tui.kept import Density
from tui.keys import bindings_of
from tui.screen_registry import OVERVIEW
from tui.screens.shared.base import View
from tui.screens.shared.chart_curves import AWAIT, IN_FLIGHT, IOPS, LATENCY, THROUGHPUT, draw
from tui.screens.shared.pages import open_page
from tui.screens.shared.process_scope import Scope
from tui.text.columns import default_columns, with_trend
from tui.text.format import format_quantity
from tui.text.row_texts import device_texts
from tui.text.safe import labels_with_badges
from tui.widgets.chart.widget import Chart
from tui.widgets.grid.filtering import NO_TEXTS, RowTexts
from tui.widgets.grid.height import fit_to_rows
from tui.widgets.grid.table import Grid
from tui.widgets.line import TextLine

_FIGURES = (
    ("CPU", ("cpu_user_pct", "cpu_system_pct", "cpu_iowait_pct")),
    ("PSI", ("psi_io_some_pct", "psi_cpu_some_pct", "psi_memory_some_pct")),
    ("mem", ("memory_available_bytes", "dirty_bytes")),
    ("more", ("cpu_irq_pct", "cpu_steal_pct", "psi_io_full_pct", "writeback_bytes", "memory_total_bytes")),
)
_SHORT = {
    "memory_available_bytes": "free",
    "memory_total_bytes": "total",
    "psi_io_some_pct": "io",
    "psi_cpu_some_pct": "cpu",
    "psi_memory_some_pct": "mem",
    "psi_io_full_pct": "io full",
}


def host_line(frame: Frame, width: int) -> Content:
    """CPU, pressure and memory of a frame, as many complete groups as fit; empty without a host table."""
    line = Content("")
    host = frame.tables.get("host")
    if host is None:
        return line
    for title, field_ids in _FIGURES:
        group = Content.assemble((f" {title} ", "bold"), *_parts(host, field_ids))
        if line.cell_length + group.cell_length > width + 1:
            break
        line += group
    return line


def _parts(host: FrameTable, field_ids: Sequence[str]) -> Iterator[tuple[str, str]]:
    for field_id in field_ids:
        field = get_field("host", field_id)
        figure = format_quantity(host.value(field_id, 0), field.unit, 4)
        percent = "%" if field_id.endswith("_pct") and figure != "-" else ""
        yield f"{_SHORT.get(field_id, field.title)} ", "dim"
        yield f"{figure}{percent} ", ""


PANELS = (LATENCY, IOPS, THROUGHPUT, IN_FLIGHT)
MOST_PROCESS_LINES = 10
LOAD_TABLE = "load_total"


class OverviewScreen(View):
    """Disks by heat, the verdict, charts of the selected one, and the host."""

    ENTRY = OVERVIEW
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(OVERVIEW.actions)
    DEFAULT_CSS = """
    OverviewScreen #disks { height: 6; }
    OverviewScreen #charts { height: 1fr; min-height: 3; grid-size: 2 1; grid-gutter: 0 1; }
    OverviewScreen #charts Chart { width: 1fr; height: 1fr; }
    OverviewScreen #throughput, OverviewScreen #in_flight { display: none; }
    OverviewScreen #processes { height: 5; display: none; }
    OverviewScreen.-tall #charts { grid-size: 2 2; }
    OverviewScreen.-tall #throughput, OverviewScreen.-tall #in_flight { display: block; }
    OverviewScreen.-tall #processes { display: block; }
    OverviewScreen.-tall.-dense #charts { grid-size: 2 1; }
    OverviewScreen.-tall.-dense #throughput, OverviewScreen.-tall.-dense #in_flight { display: none; }
    OverviewScreen #verdict { height: 2; text-wrap: wrap; padding: 0 1; }
    OverviewScreen.-wide #verdict, OverviewScreen.-flat #verdict, OverviewScreen.-dense #verdict { height: 1; }
    OverviewScreen.-tiny #verdict { display: none; }
    OverviewScreen.-narrow #charts { grid-size: 1 1; }
    OverviewScreen.-narrow #iops { display: none; }
    """

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)
        self._chosen: str | None = None
        self._subject: ChartSubject = ChartSubject.DISK
        self._tabled: tuple[Frame | None, Size, Density] = None, Size(0, 0), Density.NORMAL
        """The frame that the tables show, and the size and view that they were fitted to."""

    def compose_body(self) -> ComposeResult:
        """Grid, verdict, charts, host, processes."""
        columns = with_trend(default_columns("disks"), "disks", after="max_ms")
        yield Grid("disks", columns, sort="heat", id="disks")
        yield TextLine(" ", id="verdict")
        with Cells(id="charts", classes="extra chart-area"):
            yield from (panel.make() for panel in PANELS)
        yield Grid("processes", default_columns("processes"), sort="read_bytes_per_s", id="processes")
        yield TextLine(" ", id="host", classes="extra")

    def show_frame(self, frame: Frame) -> None:
        """Show grids, verdict, charts and host; only charts if a frame is shown again, as after one of their keys."""
        shown = frame, self.size, self.app_state.density
        if self._tabled != shown:
            self._tabled = shown
            self._show_tables(frame)
        self._show_chosen(frame)

    def _show_chosen(self, frame: Frame) -> None:
        """Draw all that is about the disk under the cursor, in one picture."""
        self._show_verdict(frame)
        self._show_charts(frame)

    def _show_tables(self, frame: Frame) -> None:
        disks = _shown_disks(frame)
        self._fit_grid(disks)
        texts: RowTexts = NO_TEXTS if disks is None else device_texts(disks.rows, frame.topology)
        ordered = None if disks is None else with_hot_order(disks, frame)
        grid = self.query_one("#disks", Grid)
        grid.trends = self.trends(frame, rows_of("disks"))
        grid.show(ordered, labels_with_badges(frame.topology), texts)
        # A cursor that stays on the hottest disk is on another one now: its charts are drawn once, with the frame.
        self._chosen = grid.cursor_key or self._chosen
        processes = self.query_one("#processes", Grid)
        processes.show(frame.tables.get("processes"))
        fit_to_rows(processes, frame.tables.get("processes"), MOST_PROCESS_LINES)
        self.query_one("#host", TextLine).put(host_line(frame, self.size.width))

    def _show_verdict(self, frame: Frame) -> None:
        row = row_of(self._followed(frame), frame.tables.get("disks"))
        self.query_one("#verdict", TextLine).put(verdict(frame, row) if row is not None else " ")

    def latency_subject(self) -> LatencySubject | None:
        """Return the subject of the charts."""
        frame = self.app_state.frame
        trace = None if frame is None else trace_of(self._subject, self._followed(frame), frame)
        return None if trace is None or frame is None else traced_subject(trace, frame)

    def load_device(self) -> str | None:
        """Return the disk under the cursor."""
        return None if self.app_state.frame is None else self._followed(self.app_state.frame)

    def _followed(self, frame: Frame) -> str | None:
        """Select the disk under the cursor, else the hottest."""
        return self._chosen or hottest_of(_shown_disks(frame), frame)

    def _show_charts(self, frame: Frame) -> None:
        trace = trace_of(self._subject, self._followed(frame), frame)
        if trace is None or not self.query_one("#charts").display:
            return
        series = self.app_state.history.series(trace.table, trace.key, frame.time_ns, self.app_state.span_ns)
        for panel in PANELS:
            chart = self.query_one(f"#{panel.id}", Chart)
            # The parts of the latency of a load are not known, but its percentiles are.
            drawn = AWAIT if panel is LATENCY and trace.table != LOAD_TABLE else panel
            chart.set_title(drawn.title, of=trace.title)
            if chart.display:
                draw(chart, series, drawn, self.app_state)

    def _fit_grid(self, disks: FrameTable | None) -> None:
        """Fit the grid to its rows, up to half of the screen, more in a dense view, or all of it without charts."""
        half, dense = self.size.height // 2 - 3, self.size.height * 3 // 4 - 4
        most = (dense if self.has_class("-dense") else half) if self.query_one("#charts").display else None
        fit_to_rows(self.query_one("#disks", Grid), disks, most)

    @on(Grid.RowHighlighted, "#disks")
    def _highlighted(self, event: Grid.RowHighlighted) -> None:
        event.stop()
        if event.key != self._chosen:
            self._chosen = event.key
            self.draw_at_rest(self._show_chosen)

    @on(Grid.RowSelected, "#disks")
    def _selected(self, event: Grid.RowSelected) -> None:
        self._show_disk(event.key)

    @on(Grid.RowSelected, "#processes")
    def _process_selected(self, event: Grid.RowSelected) -> None:
        from tui.screens.processes import ProcessesView  # noqa: PLC0415 (it can wait until the first screen is drawn)

        open_page(self.app, ProcessesView(self.app_state, Scope(safe_text(event.name), submitter=event.key)))

    def action_view_disk(self) -> None:
        """Show the details of the disk; a focused grid handles Enter first."""
        key = self._followed(self.app_state.frame) if self.app_state.frame is not None else None
        if key is not None:
            self._show_disk(key)

    def _show_disk(self, key: str) -> None:
        from tui.screens.details import DiskView  # noqa: PLC0415 (it can wait until the first screen is drawn)

        open_page(self.app, DiskView(self.app_state, key))

    def action_view_subject(self) -> None:
        """Draw another subject."""
        if self.app_state.frame is not None:
            self._subject = next_subject(self._subject, self.app_state.frame)
            self._show_charts(self.app_state.frame)


def _shown_disks(frame: Frame) -> FrameTable | None:
    disks = frame.tables.get("disks")
    return None if disks is None else present_disks(disks, frame.topology)
