"""Two axes as a map of cells: the load across, another axis down, the others as in the curve of the cursor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from msgspec import Struct
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from collectors.field import Unit
from engine.sweep.axes import shown
from engine.sweep.plan import SweepPlan
from engine.sweep.points import Point
from tui.screens.sweep.rows import PointRow, PointState
from tui.text.format import format_quantity
from tui.text.glyphs import glyphs_of
from tui.widgets.spans import LEVELS, Spanned, Spans

FIGURES = (
    ("iops", "IOPS", Unit.PER_SECOND),
    ("mean", "mean ms", Unit.MILLISECONDS),
    ("p99", "p99 ms", Unit.MILLISECONDS),
)
"""What the cells can show."""
_WIDTHS = (10, 8, 7, 5)
"""Widths of a cell: mark, density, figure, more marks; the smallest has no figure."""
_FIGURE_WIDTH = 5


class MapGrid(Struct, frozen=True):
    """Cells by position."""

    down: str
    """Key of the axis that runs down."""
    across: str
    lines: tuple[tuple[str, int], ...]
    """Name and curve of each line."""
    loads: tuple[int, ...]


def map_grid(plan: SweepPlan, rows: Sequence[PointRow], curve: int) -> MapGrid | None:
    """Lay out the map around a curve; None where only one axis varies, or none is a load."""
    if plan.load is None or not plan.curves[0].values:
        return None
    here = plan.curves[curve].values
    knob = here[0][0]
    lines = tuple((shown(knob, each.values[0][1]), each.index) for each in plan.curves if each.values[1:] == here[1:])
    curves = {index for _, index in lines}
    loads = sorted({row.point.load for row in rows if row.point.curve in curves})
    return MapGrid(knob.key, plan.load.knob.key, lines, tuple(loads))


class SweepMap(Spanned, can_focus=True, inherit_bindings=False):
    """Cells coloured and shaded by a figure, with a cursor in both directions."""

    TAKES_ARROWS = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1, 0)", "Lower load", show=False, id="map-left"),
        Binding("right", "move(1, 0)", "Higher load", show=False, id="map-right"),
        Binding("up,k", "move(0, -1)", "Line above", show=False, id="map-up"),
        Binding("down,j", "move(0, 1)", "Line below", show=False, id="map-down"),
    ]

    @dataclass
    class PointMoved(Message):
        """The cursor is on another point."""

        point: Point

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._grid: MapGrid | None = None
        self._rows: dict[Point, PointRow] = {}
        self._at: Point | None = None
        self._figure = FIGURES[0]

    def show(self, grid: MapGrid | None, rows: Sequence[PointRow], at: Point | None) -> None:
        """Take new cells, and the point under the cursor."""
        self._grid, self._rows, self._at = grid, {row.point: row for row in rows}, at
        self.repaint()

    def next_figure(self) -> None:
        """Show the next figure in the cells."""
        self._figure = FIGURES[(FIGURES.index(self._figure) + 1) % len(FIGURES)]
        self.repaint()

    def action_move(self, loads: int, lines: int) -> None:
        """Move the cursor to the next cell that is a point."""
        grid, at = self._grid, self._at
        if grid is None or at is None:
            return
        curves = [index for _, index in grid.lines]
        line = min(max(curves.index(at.curve) + lines, 0), len(curves) - 1) if at.curve in curves else 0
        here = [load for load in grid.loads if Point(curves[line], load) in self._rows]
        nearest = min(range(len(here)), key=lambda number: abs(math.log(here[number] / at.load)))
        self._put(Point(curves[line], here[min(max(nearest + loads, 0), len(here) - 1)]))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to a cell."""
        offset, grid = event.get_content_offset(self), self._grid
        if offset is None or grid is None:
            return
        line, (first, count, width) = offset.y - 2, self._window(grid)
        column = (offset.x - self._name_width(grid)) // width
        if 0 <= line < len(grid.lines) and 0 <= column < count:
            point = Point(grid.lines[line][1], grid.loads[first + column])
            if point in self._rows:
                self._put(point)

    def _put(self, point: Point) -> None:
        if point != self._at:
            self._at = point
            self.repaint()
            self.post_message(self.PointMoved(point))

    # ------------------------------------------------------------------ drawing

    def draw_lines(self) -> list[Strip]:
        """Title, loads, a line for each value of the other axis."""
        grid = self._grid
        if grid is None or not grid.loads:
            return self.hint("a map needs two axes, such as --vary qd=1..64 --vary bs=4k,64k")
        first, count, width = self._window(grid)
        loads = grid.loads[first : first + count]
        name_width = self._name_width(grid)
        hidden = (
            f"  {len(grid.loads) - count} of {len(grid.loads)} loads beyond the edge" if count < len(grid.loads) else ""
        )
        lines: list[Spans] = [
            [(f" {self._figure[1]} ", "mark"), (f" {grid.down} down, {grid.across} across{hidden}", "text")],
            [(" " * name_width, "head"), *((f"{load}".rjust(width - 2) + "  ", "head") for load in loads)],
        ]
        values = [value for row in self._rows.values() if (value := row.figure(self._figure[0]))]
        ends = (min(values, default=1.0), max(values, default=1.0))
        top = self._top(grid)
        for name, curve in grid.lines[top : top + max(self.area.height - 2, 1)]:
            head = [(f"{name.rjust(name_width - 1)} ", "text")]
            lines.append([*head, *(span for load in loads for span in self._cell(Point(curve, load), width, ends))])
        return self.filled(map(self.strip, lines))

    def _name_width(self, grid: MapGrid) -> int:
        return max(len(name) for name, _ in grid.lines) + 2

    def _top(self, grid: MapGrid) -> int:
        """First visible line, so that the one of the cursor is."""
        curves, room = [index for _, index in grid.lines], max(self.area.height - 2, 1)
        at = curves.index(self._at.curve) if self._at is not None and self._at.curve in curves else 0
        return max(0, at - room + 1)

    def _window(self, grid: MapGrid) -> tuple[int, int, int]:
        """First load that is shown, how many are, and the width of a cell; the one of the cursor always is."""
        room = max(self.area.width - self._name_width(grid), 1)
        width = next((each for each in _WIDTHS if len(grid.loads) * each <= room), _WIDTHS[-1])
        count = min(max(room // width, 1), len(grid.loads))
        at = grid.loads.index(self._at.load) if self._at is not None and self._at.load in grid.loads else 0
        return min(max(0, at - count + 1), len(grid.loads) - count), count, width

    def _cell(self, point: Point, width: int, ends: tuple[float, float]) -> Spans:
        """Cursor or mark, density, figure."""
        glyphs, row = glyphs_of(self), self._rows.get(point)
        if row is None:
            return [(" " * width, "text")]
        value = row.figure(self._figure[0])
        lead, room = glyphs.vertical if row.is_in_interval else " ", width - 1
        if point == self._at:
            lead = glyphs.cursor
        elif row.optima and width == _FIGURE_WIDTH + 2:
            lead = row.optima[0]
        if not value:
            word = {PointState.MEASURING: "now", PointState.SKIPPED: "skip", PointState.FAILED: "fail"}.get(
                row.state, "."
            )
            return [(lead, "mark"), (word[: room - 1].rjust(room - 1) + " ", "now" if word == "now" else "muted")]
        level = _level(value, ends)
        body = glyphs.heat[level] * 2
        if width != _WIDTHS[-1]:
            body = glyphs.heat[level] + format_quantity(value, self._figure[2], _FIGURE_WIDTH).rjust(_FIGURE_WIDTH)
        # The figure is never cut: where there is room for one mark, the best balance is the first.
        marks = row.optima[: room - len(body)].ljust(room - len(body))
        return [(lead, "mark"), (body, f"level-{level}"), (marks, "mark")]


def _level(value: float, ends: tuple[float, float]) -> int:
    """1 to 8, in logarithms between the least and the most."""
    low, high = ends
    share = math.log(value / low) / math.log(high / low) if high > low else 1.0
    return 1 + min(int(share * LEVELS), LEVELS - 1)
