"""What a column means: by a key or the right mouse button on its title, one column after the other."""

from __future__ import annotations

import pytest

from tests.app.multipath import multipath_samples
from tests.app.sources import ListSource, make_samples
from tests.app.stage import SIZES, make_app, on_stage, play, screen_text, until
from tests.app.taken import SnapCompare
from tests.app.test_grid_choices import grid_of
from tests.app.test_snapshots import played
from tui.screens.shared.column_help import ColumnHelp

SMALL_TO_LARGE = ((60, 20), *SIZES)


@pytest.mark.parametrize("size", SMALL_TO_LARGE)
async def test_a_key_explains_the_column_that_sorts(size: tuple[int, int]) -> None:
    source = ListSource(make_samples(count=6))
    async with on_stage(make_app(source), size) as pilot:
        await play(pilot, source, 4)
        disks = grid_of(pilot, "#disks")
        await pilot.press("greater_than_sign", "greater_than_sign", "E")
        await until(pilot, lambda: isinstance(pilot.app.screen, ColumnHelp))
        await pilot.pause()
        text = screen_text(pilot)
        assert disks.sorting.field_id == "service_ms"
        for words in (
            "S  ms",
            "Service time per I/O",
            "service_ms, in filters",
            "from 20 ms",
            "block_rq_issue",
            "lower",
        ):
            assert words in text, words
        assert "now" in text
        assert "sampled" in text
        await pilot.press("right")
        await pilot.pause()
        assert "await_ms, in filters" in screen_text(pilot)
        await pilot.press("left", "left", "left", "left")
        await pilot.pause()
        last = disks.columns[-1]
        assert f"{last.field_id}, in filters" in screen_text(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: not isinstance(pilot.app.screen, ColumnHelp))
        assert (disks.sorting.field_id, disks.sorting.descending) == (last.field_id, True)


@pytest.mark.slow
async def test_columns_of_text_and_of_ports_are_explained_too() -> None:
    source = ListSource(multipath_samples(10))
    async with on_stage(make_app(source), SIZES[1]) as pilot:
        await play(pilot, source, 5)
        await pilot.press("5")
        columns = grid_of(pilot, "#paths").columns
        await pilot.press("E")
        await until(pilot, lambda: isinstance(pilot.app.screen, ColumnHelp))
        for number in range(len(columns)):
            await pilot.press("right")
            await pilot.pause()
            text = screen_text(pilot)
            if columns[(number + 1) % len(columns)].trend_of:
                assert "largest of five samples" in text
            assert "source" in text or "State of the path" in text or "compared with its peers" in text, number
        await pilot.press("escape")


async def test_the_right_button_on_a_title_explains_it_and_the_left_one_sorts() -> None:
    source = ListSource(make_samples(count=6))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 4)
        disks = grid_of(pilot, "#disks")
        at = disks.render_line(0).text.index("Busy")
        await pilot.click(disks, offset=(at, 0), button=3)
        await until(pilot, lambda: isinstance(pilot.app.screen, ColumnHelp))
        await pilot.pause()
        assert "busy_pct, in filters" in screen_text(pilot)
        assert disks.sorting.field_id == "heat"
        await pilot.press("escape")
        await pilot.click(disks, offset=(at, 0))
        assert disks.sorting.field_id == "busy_pct"


@pytest.mark.parametrize("size", SMALL_TO_LARGE)
def test_the_dialog(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    source = ListSource(make_samples(count=40))
    assert snap_compare(make_app(source), terminal_size=size, run_before=played(source, "E", "right", "right"))
