"""Lines hold no caches of their own and are cut as before; a new size drops what was calculated for the former."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.cache import FIFOCache
from textual.geometry import Region
from textual.strip import Strip

from tests.app.sources import ListSource, make_samples
from tests.app.stage import make_app, on_stage, play
from tui.textual_internals.themed_app import forget_geometry, leave_out_strip_caches
from tui.widgets.grid.table import Grid


async def test_no_line_of_the_app_has_caches_of_its_own() -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 5)
        grid = pilot.app.screen.query_one(Grid)
        lines = [grid.render_line(row) for row in range(grid.size.height)]
        assert any("vda" in line.text for line in lines)
        assert not any(isinstance(line._crop_cache, FIFOCache) for line in lines)


def test_lines_are_cut_divided_and_styled_as_before() -> None:
    leave_out_strip_caches()
    line = Strip([Segment("busy "), Segment("97 %", Style(bold=True))])
    for _ in range(2):
        assert line.crop(2, 6).text == "sy 9"
        assert [part.text for part in line.divide([3, 9])] == ["bus", "y 97 %"]
        assert line.adjust_cell_length(11).text == "busy 97 %  "
        assert line.crop_extend(0, 10, None).text == "busy 97 % "
        assert all(style is not None and style.italic for _, style, _ in line.apply_style(Style(italic=True)))


async def test_a_new_size_drops_what_was_calculated_for_the_former() -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source), (80, 24)) as pilot:
        await play(pilot, source, 3)
        far_away = Region(123_456, 7, 8, 9)
        far_away.intersection(Region(123_460, 8, 1, 1))
        missed = Region.intersection.cache_info().misses
        far_away.intersection(Region(123_460, 8, 1, 1))
        assert Region.intersection.cache_info().misses == missed
        await pilot.resize_terminal(100, 30)
        await play(pilot, source, 1)
        missed = Region.intersection.cache_info().misses
        far_away.intersection(Region(123_460, 8, 1, 1))
        assert Region.intersection.cache_info().misses == missed + 1


def test_cuts_of_texts_are_dropped_with_a_new_size() -> None:
    Segment("busy 97 %").split_cells(4)
    forget_geometry()
    assert Segment._split_cells.cache_info().currsize == 0
