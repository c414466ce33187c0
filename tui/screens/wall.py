"""A cell for every disk: the hot ones of hundreds."""

from __future__ import annotations

import functools
from enum import StrEnum
from typing import ClassVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.css.scalar import Scalar
from textual.geometry import Size

from collectors.derive.roles import present_disks
from collectors.field import Unit
from collectors.graph import Graph
from collectors.hotness import HEAT_ORDER, verdict, with_hot_order
from collectors.latency.subjects import LatencySubject, disk_subject
from collectors.model import Frame, FrameTable, Rows, Topology
from collectors.paths.groups import OTHER, storage_of_disks
from collectors.registry import get_field
from engine.text import safe_text
from tui.app_state import AppState
from tui.history.subjects import row_of
from tui.history.trends import Trends, rows_of
from tui.keys import bindings_of
from tui.screen_registry import WALL
from tui.screens.details import detail_view
from tui.screens.shared.base import View
from tui.screens.shared.pages import open_page
from tui.screens.shared.subject_charts import SubjectCharts
from tui.text.columns import GridColumn, figure_lines, grid_columns, trend_text
from tui.text.format import MISSING_TEXT
from tui.text.glyphs import glyphs_of
from tui.text.safe import disk_labels, short_labels
from tui.widgets.grid.rows import RowNames, natural_key
from tui.widgets.line import TextLine
from tui.widgets.wall import Wall, legend, strengths
from tui.widgets.wall_layout import WallGroup

FIELDS = ("heat", "busy_pct", "service_ms", "queue_ms", "await_ms")
"""Fields that colour the cells; the first is the default."""
FIGURES = ("heat", "busy_pct", "queue_ms", "service_ms", "await_ms", "iops", "bytes_per_s", "in_flight")


class WallOrder(StrEnum):
    """Order of the cells."""

    STORAGE = "by storage"
    NAME = "by name"
    FIGURE = "largest first"


def arranged(
    rows: Rows, ranks: NDArray[np.float64], figures: NDArray[np.float64], graph: Graph, order: WallOrder
) -> tuple[NDArray[np.intp], tuple[WallGroup, ...]]:
    """Order the rows, and name the groups of adjacent ones; one of all, or one of each, needs no heading."""
    by_name = np.argsort(ranks, kind="stable")
    if order is WallOrder.FIGURE:
        return np.argsort(-figures, kind="stable"), ()
    numbers, names = _groups(rows, graph)
    counts = np.bincount(numbers, minlength=len(names)).tolist()
    if order is WallOrder.NAME or len(names) < 2 or max(counts) < 2:
        return by_name, ()
    in_groups = by_name[np.argsort(numbers[by_name], kind="stable")]
    return in_groups, tuple(WallGroup(name, count) for name, count in zip(names, counts, strict=True))


@functools.lru_cache(maxsize=2)
def _groups(rows: Rows, graph: Graph) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """Give each row the number of its group, and the names of the groups; what is on no storage comes last."""
    storage = storage_of_disks(graph)
    of_row = [storage.get(key, OTHER) for key in rows.keys]
    names = sorted(set(of_row), key=lambda name: (name == OTHER, natural_key(name)))
    numbers = {name: number for number, name in enumerate(names)}
    return np.array([numbers[name] for name in of_row], np.intp), tuple(names)


class DiskTiles(Struct, frozen=True):
    """Figure and recent latency of each disk, for cells with room for them."""

    disks: FrameTable
    column: GridColumn
    glyphs: str
    trends: Trends

    def lines_of(self, row: int, width: int) -> tuple[str, str]:
        """Write the figure that colours the cell, await and IOPS; then draw the recent history of await."""
        shown = tuple(dict.fromkeys((self.column.field_id, "await_ms", "iops")))
        figures = " ".join(filter(None, (self._figure(field_id, row) for field_id in shown)))
        values = self.trends.of((self.disks.rows.keys[row],), "await_ms", width)[0]
        return figures, trend_text(values, self.glyphs)

    def _figure(self, field_id: str, row: int) -> str:
        column = _columns()[field_id]
        unit = {Unit.PERCENT: "%", Unit.MILLISECONDS: "ms", Unit.PER_SECOND: "/s"}.get(column.unit, "")
        title = f"{column.title} " if column.unit is Unit.COUNT else ""
        text = column.format(self.disks.value(field_id, row))
        # Without a title "-" does not tell what is not known: "0 - 0/s" would be a range.
        return "" if text == MISSING_TEXT else f"{title}{text}{unit}"


class WallScreen(View):
    """All disks at once, the figures of the one under the cursor, and its verdict."""

    ENTRY = WALL
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(WALL.actions)
    DEFAULT_CSS = """
    WallScreen Wall { height: 1fr; margin: 0 1; }
    WallScreen #verdict { padding: 0 1; }
    WallScreen.-tall SubjectCharts { display: block; }
    WallScreen.-normal #verdict { height: 2; text-wrap: wrap; }
    WallScreen.-flat #verdict { height: 1; }
    WallScreen.-tiny #legend, WallScreen.-tiny #verdict { display: none; }
    """

    def __init__(self, app_state: AppState) -> None:
        super().__init__(app_state)
        self._field = FIELDS[0]
        self._order = WallOrder.STORAGE
        self._is_grouped = False

    def compose_body(self) -> ComposeResult:
        """Legend, wall, figures and verdict of the disk under the cursor."""
        yield TextLine(" ", id="legend")
        yield Wall(id="wall")
        yield TextLine(" ", id="figures")
        yield TextLine(" ", id="verdict")
        yield SubjectCharts()

    def show_frame(self, frame: Frame) -> None:
        """Cells, legend, and the disk under the cursor."""
        wall, disks = self.query_one("#wall", Wall), _shown(frame)
        if disks is not None:
            values = disks.columns.get(self._field, np.full(len(disks.rows), np.nan))
            names = _names(disks.rows, frame.topology)
            ranked = with_hot_order(disks, frame).columns[HEAT_ORDER] if self._field == "heat" else values
            order, groups = arranged(disks.rows, names.ranks, ranked, frame.topology.graph, self._order)
            self._is_grouped = bool(groups)
            thresholds = self._column.hot
            assert thresholds is not None, "every field of the wall has thresholds"
            wall.empty_text = "no disks"
            tiles = DiskTiles(disks, self._column, glyphs_of(self).trend, self.trends(frame, rows_of("disks")))
            wall.show(disks.rows, names.all_shown, order, strengths(values, thresholds), tiles, groups=groups)
            self._fit_wall(wall)
        self._show_legend()
        self._show_figures()
        self._show_charts(frame)

    def _fit_wall(self, wall: Wall) -> None:
        """Fit the wall to its cells where charts take the rest."""
        most = self.query_one(SubjectCharts).most_rows(self.size.height)
        wanted = "1fr" if most is None else str(max(1, wall.lines_within(self.size.width - 2, most)))
        if wall.styles.height != Scalar.parse(wanted):
            wall.styles.height = wanted

    @property
    def _column(self) -> GridColumn:
        return _columns()[self._field]

    def _show_legend(self) -> None:
        thresholds, field = self._column.hot, get_field("disks", self._field)
        assert thresholds is not None, "as above"
        line = Content.assemble(
            (f" {self.key_text('wall.field')} ", "bold $accent"),
            (f"{field.title} ", "bold"),
            (f"{self.key_text('wall.order')} ", "bold $accent"),
            f"{WallOrder.NAME if self._order is WallOrder.STORAGE and not self._is_grouped else self._order}   ",
        )
        wall = self.query_one("#wall", Wall)
        for text, part in legend(glyphs_of(self).strengths, thresholds, field.unit):
            line += Content.styled(text, wall.get_visual_style(f"wall--{part}")) + Content("  ")
        self.query_one("#legend", TextLine).put(line)

    def _show_figures(self) -> None:
        """Figures and verdict of the disk under the cursor."""
        frame = self.app_state.frame
        disks, key = None if frame is None else frame.tables.get("disks"), self.query_one("#wall", Wall).cursor_key
        row = row_of(key, disks)
        if frame is None or disks is None or row is None or key is None:
            return
        name = safe_text(disk_labels(frame.topology).get(key) or disks.rows.names[row])
        room = Size(self.size.width - len(name) - 2, 1)
        figures = figure_lines(disks, "disks", row, FIGURES, room=room, glyphs=glyphs_of(self))
        self.query_one("#figures", TextLine).put(Content.assemble((f" {name} ", "bold"), figures))
        self.query_one("#verdict", TextLine).put(verdict(frame, row))

    def _show_charts(self, frame: Frame) -> None:
        key = self.query_one("#wall", Wall).cursor_key
        if key is not None and row_of(key, frame.tables.get("disks")) is not None:
            self.query_one(SubjectCharts).show(self.app_state, frame, ("disks", key))

    def latency_subject(self) -> LatencySubject | None:
        """Return the disk under the cursor."""
        key = self.query_one("#wall", Wall).cursor_key
        return None if self.app_state.frame is None or key is None else disk_subject(key, self.app_state.frame)

    def load_device(self) -> str | None:
        """Return the disk under the cursor."""
        return self.query_one("#wall", Wall).cursor_key

    @on(Wall.CellHighlighted)
    def _highlighted(self) -> None:
        self._show_figures()
        self.draw_at_rest(self._show_charts)

    @on(Wall.CellSelected)
    def _selected(self, event: Wall.CellSelected) -> None:
        open_page(self.app, detail_view(self.app_state, "disks", event.key))

    def action_wall_field(self) -> None:
        """Colour by the next figure."""
        self._field = FIELDS[(FIELDS.index(self._field) + 1) % len(FIELDS)]
        self.refresh_view()

    def action_wall_order(self) -> None:
        """Sort by name below the storage, by name alone, or by value."""
        orders = tuple(WallOrder)
        # Without groups the first two are the same.
        step = 2 if self._order is WallOrder.STORAGE and not self._is_grouped else 1
        self._order = orders[(orders.index(self._order) + step) % len(orders)]
        self.refresh_view()

    def action_wall_details(self) -> None:
        """Show the disk under the cursor."""
        self.query_one("#wall", Wall).action_select()


@functools.cache
def _columns() -> dict[str, GridColumn]:
    return {column.field_id: column for column in grid_columns("disks", tuple(dict.fromkeys((*FIELDS, *FIGURES))))}


def _shown(frame: Frame) -> FrameTable | None:
    disks = frame.tables.get("disks")
    return None if disks is None else present_disks(disks, frame.topology)


@functools.lru_cache(maxsize=2)
def _names(rows: Rows, topology: Topology) -> RowNames:
    return RowNames(rows, short_labels(topology))
