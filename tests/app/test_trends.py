"""The column with the recent history of each row."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.app.shows import disks
from tests.app.sources import ListSource, make_samples
from tests.app.stage import make_app, on_stage, play, screen_text, until
from tui.history.row_rings import Ring
from tui.history.trends import SAMPLES_PER_CELL, by_cells
from tui.text.columns import TREND, trend_text
from tui.text.glyphs import ASCII, UNICODE
from tui.widgets.grid.table import Grid

NAN = math.nan
SECOND = 1_000_000_000


def test_a_cell_has_the_largest_value_of_its_time() -> None:
    times = np.arange(1, 16, dtype=np.int64) * SECOND
    values = np.arange(1, 16, dtype=np.float32)[:, None]
    shown = by_cells(times, values, 4, 5 * SECOND, 15 * SECOND)
    assert shown[1:, 0].tolist() == [5, 10, 15]
    assert math.isnan(shown[0, 0]), "before the first sample nothing is known"


def test_a_cell_without_figures_is_not_known() -> None:
    values = np.array([[1, NAN], [NAN, NAN]], np.float32)
    shown = by_cells(np.array([4, 9], np.int64) * SECOND, values, 2, 5 * SECOND, 10 * SECOND)
    assert np.array_equal(shown, [[1, NAN], [NAN, NAN]], equal_nan=True)


def test_a_ring_gives_the_newest_of_some_rows() -> None:
    ring = Ring(("await_ms", "iops"), 1 << 20)
    for tick in range(10):
        ring.add(tick * SECOND, disks(("sda", "sdb"), await_ms=[tick, 10 * tick], iops=[1, 1]))
    times, values = ring.recent(("key of sdb", "none", "key of sda"), "await_ms", 7 * SECOND, 2 * SECOND)
    assert times.tolist() == [6 * SECOND, 7 * SECOND]
    assert np.array_equal(values, [[60, NAN, 6], [70, NAN, 7]], equal_nan=True)
    assert np.isnan(ring.recent(("key of sda",), "nothing", 7 * SECOND, 2 * SECOND)[1]).all()


@pytest.mark.parametrize(
    ("glyphs", "shown"), [(UNICODE.trend, " ▁▂▅▇"), (ASCII.trend, " _.-+")], ids=["unicode", "ascii"]
)
def test_heights_differ_and_a_gap_is_blank(glyphs: str, shown: str) -> None:
    assert trend_text(np.array([NAN, 0.0, 0.01, 5.0, 8.0]), glyphs)[:3] == shown[:3]
    heights = [glyphs.index(char) for char in trend_text(np.array([0.0, 2.0, 5.0, 8.0]), glyphs)]
    assert heights == sorted(set(heights))


async def test_the_column_is_there_where_there_is_room_and_can_be_left_out() -> None:
    source = ListSource(make_samples(count=40))
    async with on_stage(make_app(source), (160, 40)) as pilot:
        await play(pilot, source, 4 * SAMPLES_PER_CELL)
        grid = pilot.app.screen.query_one("#disks", Grid)
        line = next(line for line in screen_text(pilot).splitlines() if line.startswith("▸sdc"))
        assert sum(char in UNICODE.trend for char in line) >= 3
        assert "await trend" in screen_text(pilot)
        grid.set_columns([column for column in grid.columns if column.field_id != TREND])
        await pilot.pause()
        assert "await trend" not in screen_text(pilot)


async def test_there_is_none_in_a_small_window_or_a_lite_view() -> None:
    source = ListSource(make_samples(count=20))
    async with on_stage(make_app(source), (80, 24)) as pilot:
        await play(pilot, source, 20)
        assert "await trend" not in screen_text(pilot)
        await pilot.resize_terminal(160, 40)
        await until(pilot, lambda: "await trend" in screen_text(pilot))
        await pilot.press("Y", "Y")
        await until(pilot, lambda: "await trend" not in screen_text(pilot))


async def test_it_is_no_column_to_sort_by() -> None:
    source = ListSource(make_samples(count=20))
    async with on_stage(make_app(source), (160, 40)) as pilot:
        await play(pilot, source, 20)
        grid = pilot.app.screen.query_one("#disks", Grid)
        seen = set()
        for _ in range(len(grid.columns) + 1):
            grid.action_sort(1)
            seen.add(grid.sorting.field_id)
        assert TREND not in seen
        assert "await_ms" in seen
