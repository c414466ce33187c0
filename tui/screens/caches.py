"""Caches: hits, misses, bypass, dirty data and blocked writes, and the history of the cache under the cursor."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.geometry import Size

from collectors.field import Unit
from collectors.latency.subjects import LatencySubject, disk_subject
from collectors.model import Frame, Rows, Topology
from collectors.tables.cache.schema import DEVICE_KINDS, kind_of, subject_of_key
from collectors.tables.cache.subject import CACHES
from tui.history.subjects import row_of
from tui.keys import bindings_of
from tui.screen_registry import CACHES as ENTRY
from tui.screens.details import DiskView
from tui.screens.shared.base import View
from tui.screens.shared.chart_curves import Panel, RowCharts
from tui.screens.shared.pages import open_page
from tui.text.columns import default_columns, figure_lines
from tui.text.glyphs import glyphs_of
from tui.widgets.grid.height import fit_beside_charts
from tui.widgets.grid.table import Grid
from tui.widgets.line import TextLine

_NONE_HERE = "no cache here: no ZFS, bcache, dm-cache or dm-writecache; maps of the device mapper need root"
_NONE_RECORDED = "this recording holds no caches"
_PANELS = (
    Panel("hits", "Hits and misses", Unit.PERCENT, ("hit_pct", "miss_pct", "bypass_pct"), CACHES.table),
    Panel("lookups", "Lookups", Unit.PER_SECOND, ("lookups_per_s", "blocked_per_s"), CACHES.table),
    Panel("filled", "Used and dirty", Unit.BYTES, ("used_bytes", "dirty_bytes"), CACHES.table),
)


class CachesView(View):
    """A row per cache and part of the ARC, and the figures and history of the one under the cursor."""

    ENTRY = ENTRY
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(ENTRY.actions)
    DEFAULT_CSS = """
    CachesView #rows { height: 1fr; }
    CachesView #figures { height: 3; }
    CachesView #charts { height: 1fr; min-height: 8; grid-size: 2 1; grid-gutter: 0 1; }
    CachesView #filled { display: none; }
    CachesView.-wide #charts { grid-size: 3 1; }
    CachesView.-wide #filled { display: block; }
    CachesView.-tiny #figures { display: none; }
    """

    def compose_body(self) -> ComposeResult:
        """Grid, figures and charts of the cache under the cursor."""
        yield Grid(
            CACHES.table,
            default_columns(CACHES.table),
            sort="lookups_per_s",
            name_title="Cache",
            name_part=2,
            id="rows",
        )
        yield TextLine(" ", id="figures", classes="extra")
        yield RowCharts(*_PANELS)

    def show_frame(self, frame: Frame) -> None:
        """Update the rows and the row under the cursor."""
        table = frame.tables.get(CACHES.table)
        grid = self.query_one("#rows", Grid)
        grid.waiting = _NONE_RECORDED if self.app_state.transport.seekable else _NONE_HERE
        fit_beside_charts(grid, table, self.query_one("#charts"))
        if table is None:
            grid.show(None)
        else:
            grid.show(table, _labels(table.rows, frame.topology))
        self._show_chosen(frame)
        self._show_charts(frame)

    def _show_chosen(self, frame: Frame) -> None:
        key, table = self.query_one("#rows", Grid).cursor_key, frame.tables.get(CACHES.table)
        line, row = self.query_one("#figures", TextLine), row_of(key, table)
        if key is None or table is None or row is None:
            line.put(" ")
            return
        fields = [field.id for field in CACHES.fields]
        room = Size(self.size.width, 2)
        figures = figure_lines(table, CACHES.table, row, fields, room=room, glyphs=glyphs_of(self))
        name = _labels(table.rows, frame.topology)[key]
        line.put(Content.assemble((f" {name}\n", "bold"), figures))

    def _show_charts(self, frame: Frame) -> None:
        self.query_one(RowCharts).show_chosen(self.app_state, frame, self.query_one("#rows", Grid))

    @on(Grid.RowHighlighted, "#rows")
    def _highlighted(self) -> None:
        if self.app_state.frame is not None:
            self._show_chosen(self.app_state.frame)
            self.draw_at_rest(self._show_charts)

    def _disk(self) -> str | None:
        """Key of the device of the cache under the cursor; None for the ARC, a pool or a file."""
        key = self.query_one("#rows", Grid).cursor_key
        return subject_of_key(key) if key is not None and kind_of(key) in DEVICE_KINDS else None

    def latency_subject(self) -> LatencySubject | None:
        """Return the device of the cache under the cursor."""
        disk = self._disk()
        return None if self.app_state.frame is None or disk is None else disk_subject(disk, self.app_state.frame)

    def load_device(self) -> str | None:
        """Return the device of the cache under the cursor."""
        return self._disk()

    @on(Grid.RowSelected, "#rows")
    def action_caches_disk(self) -> None:
        """Show the device of the cache under the cursor; a focused grid handles Enter first."""
        disk, frame = self._disk(), self.app_state.frame
        if disk is not None and frame is not None and row_of(disk, frame.tables.get("disks")) is not None:
            open_page(self.app, DiskView(self.app_state, disk))
        else:
            self.notify("this cache is no block device", markup=False)


@functools.lru_cache(maxsize=2)
def _labels(rows: Rows, topology: Topology) -> Mapping[str, str]:
    return dict(zip(rows.keys, CACHES.labels(rows, topology), strict=True))
