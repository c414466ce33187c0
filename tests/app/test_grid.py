"""The grid as the operator sees and drives it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from rich.cells import cell_len
from rich.style import Style
from textual import on
from textual.pilot import Pilot

from collectors.model import FrameTable, Tier
from engine.errors import UsageError
from tests.app.shows import OneWidget, after, disks, text_of
from tests.app.stage import drawn_again, layouts
from tui.text.columns import grid_columns
from tui.text.glyphs import ASCII, UNICODE
from tui.widgets.grid.lines import GridStyle, RowPainter, lay_out
from tui.widgets.grid.rows import RowNames, Sorting
from tui.widgets.grid.table import Grid

NAN = math.nan
COLUMNS = ("heat", "iops", "bytes_per_s", "queue_ms", "service_ms", "busy_pct", "max_ms", "p99_ms")


class Heard(OneWidget):
    """Remembers what the grid tells."""

    @on(Grid.RowHighlighted)
    @on(Grid.RowSelected)
    @on(Grid.ChoicesChanged)
    def remember(self, message: object) -> None:
        self.heard.append(message)


def _grid(sort: str = "iops", fields: Sequence[str] = COLUMNS) -> Grid:
    return Grid("disks", grid_columns("disks", fields), sort=sort, name_title="Disk", id="grid")


def _table() -> FrameTable:
    return disks(
        ["sda", "sdb", "nvme0n1"],
        tiers={"queue_ms": [Tier.EXACT, Tier.SAMPLED, Tier.KERNEL]},
        heat=[12, 55, 91],
        iops=[1, 1234, 800],
        bytes_per_s=[0, 5e6, NAN],
        queue_ms=[0.042, 3.5, 20],
        busy_pct=[0, 75, 99.9],
    )


def _many(count: int) -> FrameTable:
    return disks([f"sd{i}" for i in range(count)], iops=list(range(count, 0, -1)))


def _line(grid: Grid, name: str) -> str:
    return next(line for line in text_of(grid) if name in line)


async def _settle(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await pilot.pause()


async def test_rows_are_sorted_marked_and_legible_without_colour() -> None:
    grid = _grid()
    async with OneWidget(grid).run_test(size=(80, 12)) as pilot:
        grid.show(_table())
        await pilot.pause()
        lines = text_of(grid)
        assert lines[0].split() == ["Disk", "Heat", "IOPS▼", "B/s", "Q", "S", "Busy", "Peak", "p99"]
        assert lines[1].split() == ["1/s", "B/s", "ms", "ms", "%", "ms", "ms"]
        assert [line.split()[0].strip("▸") for line in lines[2:5]] == ["sdb", "nvme0n1", "sda"]
        assert "△55·" in lines[2]
        assert "△3.50~" in lines[2]
        assert "△75.0·" in lines[2]
        assert "▲20.0·" in lines[3]
        assert lines[3].split()[3] == "-"
        assert "0.042 " in lines[4]
        assert {cell_len(line) for line in lines} == {80}


async def test_ascii_says_the_same() -> None:
    grid = _grid()
    async with OneWidget(grid, glyphs=ASCII, theme="lunscope-ansi").run_test(size=(80, 12)) as pilot:
        grid.show(_table())
        await pilot.pause()
        lines = text_of(grid)
        assert all(line.isascii() for line in lines)
        assert "!91:" in _line(grid, "nvme0n1")
        assert "*3.50~" in _line(grid, "sdb")
        assert "IOPSv" in lines[0]


async def test_waits_in_words_before_the_first_sample_and_without_rows() -> None:
    grid = _grid()
    async with OneWidget(grid).run_test(size=(60, 6)) as pilot:
        await pilot.pause()
        assert "waiting for the first sample" in text_of(grid)[2]
        grid.show(disks([]))
        assert "nothing here" in text_of(grid)[2]
        grid.show(_table())
        grid.set_filter("zzz")
        assert "no row matches 'zzz'" in text_of(grid)[3]


async def test_unchanged_figures_send_nothing_and_one_changed_row_one_line() -> None:
    grid = _grid()
    table = _table()
    async with OneWidget(grid).run_test(size=(80, 12)) as pilot:
        grid.show(table)
        await pilot.pause()
        drawn_again(grid)
        grid.show(after(table))
        assert drawn_again(grid) == set()
        grid.show(after(table, queue_ms=[0.5, 3.5, 20]))
        assert drawn_again(grid) == {4}


async def test_new_figures_cause_no_layout() -> None:
    grid = _grid()
    table = _many(50)
    app = OneWidget(grid)
    async with app.run_test(size=(80, 12)) as pilot:
        grid.show(table)
        await pilot.pause()
        before = layouts(app.screen, grid)
        grid.show(after(table, iops=list(range(50))))
        await pilot.pause()
        assert layouts(app.screen, grid) == before


async def test_a_figure_is_whole_or_absent_and_the_rest_is_a_scroll_away() -> None:
    grid = _grid()
    async with OneWidget(grid).run_test(size=(40, 12)) as pilot:
        grid.show(_table())
        await pilot.pause()
        assert text_of(grid)[0].split() == ["Disk", "Heat", "IOPS▼", "B/s", "Q", "▸"]
        await _settle(pilot, "right", "right")
        assert text_of(grid)[0].split() == ["◂Disk", "B/s", "Q", "S", "Busy", "▸"]
        await _settle(pilot, *["right"] * 9)
        assert text_of(grid)[0].split()[-1] == "p99"
        await _settle(pilot, *["left"] * 9)
        assert text_of(grid)[0].split() == ["Disk", "Heat", "IOPS▼", "B/s", "Q", "▸"]


async def test_new_room_shows_the_columns_on_the_left_again() -> None:
    grid = _grid()
    async with OneWidget(grid).run_test(size=(40, 12)) as pilot:
        grid.show(_table())
        await _settle(pilot, *["right"] * 9)
        assert text_of(grid)[0].startswith("◂Disk")
        await pilot.resize_terminal(60, 12)
        await _settle(pilot)
        assert text_of(grid)[0].split() == ["◂Disk", "IOPS▼", "B/s", "Q", "S", "Busy", "Peak", "p99"]
        await pilot.resize_terminal(200, 12)
        await _settle(pilot)
        assert text_of(grid)[0].split() == ["Disk", "Heat", "IOPS▼", "B/s", "Q", "S", "Busy", "Peak", "p99"]


async def test_a_single_line_is_the_row_under_the_cursor() -> None:
    grid = _grid()
    async with OneWidget(grid).run_test(size=(30, 1)) as pilot:
        grid.show(_table())
        await _settle(pilot)
        assert text_of(grid)[0].split()[0] == "▸sdb"
        await _settle(pilot, "down")
        assert text_of(grid)[0].split()[0] == "▸nvme0n1"


@pytest.mark.parametrize("size", [(20, 5), (10, 3), (3, 2), (1, 1), (300, 80)])
async def test_any_size_is_filled_exactly(size: tuple[int, int]) -> None:
    grid = _grid()
    async with OneWidget(grid).run_test(size=size) as pilot:
        grid.show(_many(200))
        await pilot.pause()
        await _settle(pilot, "down", "end", "home", "right")
        lines = text_of(grid)
        width = grid.scrollable_content_region.width
        assert len(lines) == size[1]
        assert all(cell_len(grid.render_line(y).crop(0, width).text) == width for y in range(size[1]))


async def test_keys_move_the_cursor_and_tell_of_it() -> None:
    grid = _grid()
    app = Heard(grid)
    async with app.run_test(size=(60, 8)) as pilot:
        grid.show(_many(100))
        await pilot.pause()
        await _settle(pilot, "down", "down", "up", "enter")
        assert grid.cursor_key == "key of sd1"
        assert app.heard[-1] == Grid.RowSelected(grid, "key of sd1", "sd1")
        assert [message.key for message in app.heard if isinstance(message, Grid.RowHighlighted)] == [
            f"key of sd{i}" for i in (0, 1, 2, 1)
        ]
        assert _line(grid, "sd1 ").startswith("▸")
        await _settle(pilot, "end")
        assert grid.cursor_key == "key of sd99"
        assert "sd99" in text_of(grid)[-1]
        await _settle(pilot, "pageup")
        assert grid.cursor_key == "key of sd94"
        await _settle(pilot, "home")
        assert (grid.cursor_key, grid.scroll_offset.y) == ("key of sd0", 0)


async def test_the_view_follows_a_moved_cursor_but_not_one_scrolled_away_from() -> None:
    grid = _grid()
    table = _many(100)
    async with OneWidget(grid).run_test(size=(60, 8)) as pilot:
        grid.show(table)
        await pilot.pause()
        await _settle(pilot, "down")
        grid.show(after(table, iops=[100.0, 0.5, *range(98, 0, -1)]))
        await pilot.pause()
        assert grid.cursor_key == "key of sd1"
        assert "sd1 " in text_of(grid)[-1]
        grid.scroll_to(y=20, animate=False)
        await pilot.pause()
        grid.show(table)
        await pilot.pause()
        assert grid.scroll_offset.y == 20


async def test_sort_keys_and_header_clicks() -> None:
    grid = _grid("heat")
    app = Heard(grid)
    async with app.run_test(size=(80, 8)) as pilot:
        grid.show(_table())
        await pilot.pause()
        await _settle(pilot, "greater_than_sign")
        assert (app.heard[-1], grid.sorting) == (Grid.ChoicesChanged(grid), Sorting("iops", False))
        await _settle(pilot, "I")
        assert (app.heard[-1], grid.sorting) == (Grid.ChoicesChanged(grid), Sorting("iops", True))
        await _settle(pilot, "less_than_sign", "less_than_sign")
        assert (app.heard[-1], grid.sorting) == (Grid.ChoicesChanged(grid), Sorting("name", False))
        assert "Disk ▲" in text_of(grid)[0]
        assert "nvme0n1" in text_of(grid)[2]
        busy = text_of(grid)[0].index("Busy")
        await pilot.click(grid, offset=(busy, 0))
        assert (app.heard[-1], grid.sorting) == (Grid.ChoicesChanged(grid), Sorting("busy_pct", False))
        await pilot.click(grid, offset=(busy, 0))
        assert (app.heard[-1], grid.sorting) == (Grid.ChoicesChanged(grid), Sorting("busy_pct", True))


async def test_click_puts_the_cursor_and_double_click_chooses() -> None:
    grid = _grid()
    app = Heard(grid)
    async with app.run_test(size=(60, 8)) as pilot:
        grid.show(_many(100))
        await pilot.pause()
        await pilot.click(grid, offset=(3, 5))
        assert grid.cursor_key == "key of sd3"
        await pilot.double_click(grid, offset=(3, 3))
        assert app.heard[-1] == Grid.RowSelected(grid, "key of sd1", "sd1")


async def test_filter_is_typed_kept_and_dropped() -> None:
    grid = _grid()
    async with Heard(grid).run_test(size=(80, 8)) as pilot:
        grid.show(_table())
        await pilot.pause()
        await _settle(pilot, "slash", "n", "v", "x", "backspace", "down")
        assert (grid.filter_text, grid.row_count) == ("nv", 1)
        assert text_of(grid)[0].startswith("/nv▏  1 of 3 ")
        await _settle(pilot, "enter", "greater_than_sign")
        assert "/nv " in text_of(grid)[0]
        assert grid.sorting.field_id == "bytes_per_s"
        await _settle(pilot, "escape")
        assert (grid.filter_text, grid.row_count) == ("", 3)


async def test_labels_take_the_place_of_names() -> None:
    grid = _grid()
    async with OneWidget(grid).run_test(size=(60, 8)) as pilot:
        grid.show(_table(), {"key of sda": "oradata [red]"})
        await pilot.pause()
        assert "oradata [red]" in text_of(grid)[4]


async def test_cursor_goes_to_a_key_that_is_shown() -> None:
    grid = _grid()
    async with OneWidget(grid).run_test(size=(60, 8)) as pilot:
        grid.show(_many(100))
        await pilot.pause()
        assert grid.move_to_key("key of sd42")
        await pilot.pause()
        assert any(line.startswith("▸sd42") for line in text_of(grid))
        assert not grid.move_to_key("no such key")


async def test_another_theme_recolours_what_is_on_screen() -> None:
    grid = _grid()
    app = OneWidget(grid)
    async with app.run_test(size=(60, 8)) as pilot:
        grid.show(_table())
        await pilot.pause()
        before = [segment.style for segment in grid.render_line(2)]
        app.theme = "lunscope-light"
        await pilot.pause()
        assert [segment.style for segment in grid.render_line(2)] != before


def test_unknown_field_is_named() -> None:
    with pytest.raises(UsageError, match="no field 'speed' in table 'disks'; it has heat, iops"):
        grid_columns("disks", ["speed"])


def test_a_row_under_the_cursor_is_the_same_row_in_other_styles(monkeypatch: pytest.MonkeyPatch) -> None:
    table = disks(["sda", "sdb", "sdc"], iops=[1.0, 2000.0, 3.0])
    row_names = RowNames(table.rows, None)
    plain = {part: Style(bold=part == "name") for part in ("name", "exact", "sampled", "kernel", "warm", "hot")}
    under = {part: style + Style(reverse=True) for part, style in plain.items()}
    layout = lay_out(grid_columns("disks", COLUMNS), 60, row_names.widest, 0)
    painter = RowPainter(layout, GridStyle(UNICODE, plain, under))
    without = painter.paint(table, row_names, np.arange(3), -1)
    monkeypatch.setattr(painter, "_cells", None)  # No figure is written again.
    lines = painter.paint(table, row_names, np.arange(3), 1)
    assert lines[1].text == UNICODE.cursor + without[1].text[1:]
    assert [segment.style for segment in lines[1]] == [
        style + Style(reverse=True) for _, style, _ in without[1] if style
    ]
    assert [lines[0], lines[2]] == [without[0], without[2]]


@pytest.mark.parametrize(("size", "theme"), [((80, 24), "lunscope-dark"), ((20, 5), "lunscope-colourblind")])
def test_looks_as_agreed(size: tuple[int, int], theme: str, snap_compare: Callable[..., bool]) -> None:
    grid = _grid("heat")

    async def show(pilot: Pilot[None]) -> None:
        grid.show(_table())
        await pilot.pause()
        await pilot.press("down")

    assert snap_compare(OneWidget(grid, theme=theme), terminal_size=size, run_before=show)
