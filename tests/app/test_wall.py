"""The wall of cells: the mark that says how strong a cell is shows under the cursor too."""

from __future__ import annotations

import numpy as np
import pytest
from textual.geometry import Size

from collectors.graph import Graph, Lun, Path, Port, TargetPort
from collectors.model import Rows
from collectors.paths.groups import storage_of_disks
from tests.app.shows import OneWidget, disks
from tui.history.charts import History
from tui.history.trends import Trends, rows_of
from tui.screens.wall import DiskTiles, WallOrder, arranged
from tui.text.columns import grid_columns
from tui.text.glyphs import UNICODE
from tui.widgets.wall import HOT, IDLE, Wall
from tui.widgets.wall_layout import WallGroup, wall_layout

NAMES = tuple(f"disk{number}" for number in range(12))


@pytest.mark.parametrize(("size", "cell"), [((96, 2), 16), ((36, 1), 3), ((24, 1), 2)])
async def test_the_cell_under_the_cursor_keeps_its_level(size: tuple[int, int], cell: int) -> None:
    wall = Wall()
    async with OneWidget(wall).run_test(size=size) as pilot:
        rows = Rows(NAMES, NAMES)
        strengths = np.full(len(NAMES), IDLE)
        strengths[1] = HOT
        wall.show(rows, NAMES, np.arange(len(NAMES)), strengths)
        await pilot.pause()
        wall.action_move(1, 0)
        await pilot.pause()
        left = sum(UNICODE.strengths[HOT] in segment.text for segment in wall.render_line(0))
        assert left == 1
        marks = [segment for segment in wall.render_line(0) if UNICODE.strengths[HOT] in segment.text]
        assert all(segment.style is not None and not segment.style.reverse for segment in marks)
        reversed_text = [one.text for one in wall.render_line(0) if one.style is not None and one.style.reverse]
        assert len(reversed_text) == 1
        text = "".join(segment.text for segment in wall.render_line(0))
        assert text.index(UNICODE.strengths[HOT]) == cell
        assert text.index(reversed_text[0]) < 2 * cell


GROUPS = (WallGroup("array a", 5), WallGroup("array b", 3))


def test_cells_of_a_group_are_below_its_heading() -> None:
    layout = wall_layout(GROUPS, 8, Size(9, 5))
    assert (layout.columns, layout.cell_width, layout.lines) == (3, 3, 5)
    assert [layout.row_at(line) is None for line in range(5)] == [True, False, False, True, False]
    assert [layout.heading_at(line).name for line in (0, 3)] == ["array a", "array b"]
    assert [layout.moved(position, 1) for position in (0, 2, 3, 4, 7)] == [3, 4, 5, 6, 7]
    assert [layout.moved(position, -1) for position in (7, 5, 1)] == [4, 3, 1]
    assert [layout.lines_of(position) for position in (0, 3, 5)] == [(0, 1), (2, 2), (3, 4)]


def test_without_groups_there_is_no_heading() -> None:
    layout = wall_layout((), 8, Size(9, 5))
    assert (layout.lines, layout.headings) == (3, ())
    assert wall_layout((), 0, Size(9, 5)).lines == 0


async def test_a_wall_with_groups_moves_and_scrolls_by_cells() -> None:
    wall = Wall()
    async with OneWidget(wall).run_test(size=(6, 3)) as pilot:
        rows = Rows(NAMES[:8], NAMES[:8])
        wall.show(rows, NAMES[:8], np.arange(8), np.full(8, IDLE), groups=GROUPS)
        await pilot.pause()
        assert wall.render_line(0).text.strip().startswith("ar")
        await pilot.press("right", "down", "right", "down")
        assert wall.cursor_key == "disk7"
        await pilot.pause()
        assert wall.scroll_offset.y > 0
        await pilot.press("up", "left")
        assert wall.cursor_key == "disk1"


def test_storage_is_the_array_else_the_controller_the_port_or_the_bus() -> None:
    ports = (Port("p0", "host0", "fc"), Port("p1", "host1", "sas"), Port("n0", "nvme0", "nvme-pcie"))
    targets = (TargetPort("t0", "t0", "fc", array="A"), TargetPort("t1", "t1", "fc"))
    paths = (
        Path("a0", "a0", "a", "p0", "t0"),
        Path("a1", "a1", "a", "p0", "t0"),
        Path("b", "b", "b", "p0", "t1", controller="c7"),
        Path("c", "c", "c", "p1"),
        Path("d", "d", "d", "n0"),
    )
    graph = Graph(ports, targets, tuple(Lun(key, key) for key in "abcde"), paths)
    assert dict(storage_of_disks(graph)) == {
        "a": "array A",
        "b": "controller c7",
        "c": "HBA port host1",
        "d": "NVMe disks in this host",
        "e": "other devices",
    }
    rows = Rows(tuple("abcdex"), tuple("abcdex"))
    ranks, figures = np.arange(6.0), np.arange(6.0)
    order, groups = arranged(rows, ranks, figures, graph, WallOrder.STORAGE)
    assert [group.name for group in groups][-1] == "other devices"
    assert sum(group.cells for group in groups) == len(order) == 6
    assert arranged(rows, ranks, figures, graph, WallOrder.FIGURE)[0].tolist() == [5, 4, 3, 2, 1, 0]
    assert arranged(rows, ranks, figures, graph, WallOrder.NAME)[1] == ()


def test_a_tile_leaves_out_what_is_not_known() -> None:
    table = disks(["sda", "sdb"], heat=[0, 71], await_ms=[np.nan, 2.5], iops=[0, 350])
    tiles = DiskTiles(
        table, grid_columns("disks", ["heat"])[0], UNICODE.trend, Trends(History(), 0, 1.0, rows_of("disks"))
    )
    assert [tiles.lines_of(row, 20)[0] for row in (0, 1)] == ["Heat 0 0/s", "Heat 71 2.50ms 350/s"]
