"""The sheet of a LUN, path and port, and counters cleared from it."""

from __future__ import annotations

import pytest

from tests.app.multipath import multipath_samples
from tests.app.sources import ListSource
from tests.app.stage import make_app, play, screen_text
from tui.screens.paths.sheet import SheetView

COUNT = 6


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_sheets_of_a_lun_its_path_and_a_port(size: tuple[int, int]) -> None:
    source = ListSource(multipath_samples(COUNT))
    app = make_app(source)
    async with app.run_test(size=size) as pilot:
        await play(pilot, source, COUNT - 2)
        await pilot.press("5", "G")
        await pilot.pause()
        assert isinstance(app.screen, SheetView)
        shown = screen_text(pilot)
        assert "LUN dm-1 mpath1" in shown
        assert "all paths down" in shown
        assert "its counters were not cleared yet" in shown
        await pilot.press("number_sign")
        await play(pilot, source, 2)
        shown = screen_text(pilot)
        assert "2.0 s ago" in shown
        assert "reads" in shown
        assert [event.data["cleared"] for event in app.app_state.events.all() if "cleared" in event.data] == ["LUN"]
        await pilot.press("escape")  # closes the notice
        await pilot.press("escape")
        await pilot.pause()
        await pilot.press("enter", "down", "G")
        await pilot.pause()
        assert "path sd" in screen_text(pilot)
        assert "0x5006016000000000" in screen_text(pilot)
        await pilot.press("escape")
        await pilot.pause()
        await pilot.press("b", "G")
        await pilot.pause()
        assert "HBA port host" in screen_text(pilot)
        assert "32 Gbit" in screen_text(pilot)
