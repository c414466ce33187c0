"""Charts of the history of a row."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from textual.containers import Grid as Cells

from collectors.field import Unit
from collectors.model import Frame
from collectors.registry import get_field
from collectors.series import Series
from engine.replacing import replace
from tui.app_state import AppState
from tui.history.subjects import row_of
from tui.kept import AxisChoice
from tui.widgets.chart.model import ChartSeries, Stack
from tui.widgets.chart.widget import WAITING, Chart
from tui.widgets.grid.table import Grid

_STYLES = {
    "await_ms": "chart--total",
    "queue_ms": "chart--queue",
    "service_ms": "chart--service",
    "p99_ms": "chart--peak",
    "max_ms": "chart--peak",
    "in_flight": "chart--busy",
    "busy_pct": "chart--busy",
}
_FIRST_SPAN_INTERVALS = 60
"""Least width of a chart in intervals."""
_SPAN_GROWTH = 1.25


class Panel(Struct, frozen=True):
    """One chart of a screen: its id, title, unit, and the fields of a table that it draws."""

    id: str
    title: str
    unit: Unit
    fields: tuple[str, ...]
    table: str = "disks"
    parts: tuple[str, str] | None = None
    """Fields that add up to the first of `fields`, drawn as areas, the lower one first."""

    def make(self) -> Chart:
        """Make the widget."""
        return Chart(self.title, self.unit, id=self.id)


LATENCY = Panel("latency", "Latency", Unit.MILLISECONDS, ("await_ms", "queue_ms", "service_ms", "p99_ms"))
AWAIT = Panel("await", "Await", Unit.MILLISECONDS, ("await_ms",), parts=("service_ms", "queue_ms"))
TAIL = Panel("tail", "Latency", Unit.MILLISECONDS, ("await_ms", "p99_ms", "max_ms"))
IOPS = Panel("iops", "IOPS", Unit.PER_SECOND, ("iops",))
THROUGHPUT = Panel("throughput", "Throughput", Unit.BYTES_PER_SECOND, ("bytes_per_s",))
IN_FLIGHT = Panel("in_flight", "In flight", Unit.COUNT, ("in_flight",))
LOAD_LATENCY = Panel(
    "latency", "Latency", Unit.MILLISECONDS, ("await_ms", "p99_ms", "max_ms", "service_ms"), "load_total"
)


def draw(chart: Chart, series: Series | None, panel: Panel, app_state: AppState) -> None:
    """Draw the history of a row, if it is known; curves without values are omitted, also from the legend."""
    if series is None:
        draw_nothing(chart, _no_history(app_state))
        return
    chart.empty_text = _no_history(app_state)
    curves = [_curve(series, panel.table, field_id) for field_id in panel.fields if field_id in series.values]
    shown = [curve for curve in curves if np.isfinite(curve.values).any()]
    if not shown and panel.parts is None:
        draw_nothing(chart, "no values in this time")
        return
    chart.set_axis(app_state.latency_axis if panel.unit is Unit.MILLISECONDS else AxisChoice.LINEAR)
    known_ns = int(series.times_ns[-1] - series.times_ns[0]) if len(series.times_ns) else 0
    span_ns = span_to_show_ns(known_ns, app_state)
    chart.show(series.times_ns, shown, app_state.events.all(), span_ns=span_ns, stack=_stack(series, panel))


def draw_nothing(chart: Chart, reason: str) -> None:
    """Say in a chart why it has no curves."""
    chart.empty_text = reason
    chart.show(np.empty(0, np.int64), ())


class RowCharts(Cells):
    """Charts of the history of one row."""

    def __init__(self, *panels: Panel) -> None:
        """Take the charts, all of one table."""
        super().__init__(*(panel.make() for panel in panels), id="charts", classes="extra chart-area")
        self._panels = panels

    def show(self, app_state: AppState, frame: Frame, key: str) -> None:
        """Show what is known of a row up to a frame."""
        series = app_state.history.series(self._panels[0].table, key, frame.time_ns, app_state.span_ns)
        for panel in self._panels:
            chart = self.query_one(f"#{panel.id}", Chart)
            if chart.display:
                draw(chart, series, panel, app_state)

    def show_chosen(self, app_state: AppState, frame: Frame, grid: Grid) -> None:
        """Show the row under the cursor of a grid; without one they say why, and one that is gone leaves them."""
        key = grid.cursor_key
        if key is None:
            for chart in self.query(Chart):
                draw_nothing(chart, grid.empty_line)
        elif row_of(key, frame.tables.get(self._panels[0].table)) is not None:
            self.show(app_state, frame, key)


def _no_history(app_state: AppState) -> str:
    if app_state.is_rewound:
        return "no history is kept of this time"
    return "no figures up to this moment" if app_state.transport.seekable else WAITING


def _stack(series: Series, panel: Panel) -> Stack | None:
    """Stack the parts of a panel that has them; a part that is not recorded is not known."""
    if panel.parts is None or panel.fields[0] not in series.values:
        return None
    missing = np.full(len(series), np.nan)
    known = Series(series.times_ns, dict.fromkeys(panel.parts, missing) | dict(series.values))
    lower, upper = (_curve(known, panel.table, field_id) for field_id in panel.parts)
    # The title has the name of the whole.
    return Stack(replace(_curve(known, panel.table, panel.fields[0]), name=""), lower, upper)


def span_to_show_ns(known_ns: int, app_state: AppState) -> int:
    """Choose a time range for all that is known, up to the one set.

    It grows in large steps: in between curves only move, for which the terminal is sent little.
    """
    span_ns = _FIRST_SPAN_INTERVALS * app_state.interval_s * 1e9
    while span_ns < min(known_ns, app_state.span_ns):
        span_ns *= _SPAN_GROWTH
    return min(round(span_ns), app_state.span_ns)


def _curve(series: Series, table: str, field_id: str) -> ChartSeries:
    field, style = get_field(table, field_id), _STYLES.get(field_id, "chart--series")
    return ChartSeries(field.title, series.values[field_id], style, field.hot)
