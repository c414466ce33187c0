"""Dialogs and the palette bear keys that come twice or too late, and windows too small to show anything."""

from __future__ import annotations

import pytest
from textual.command import CommandList, CommandPalette
from textual.pilot import Pilot
from textual.screen import ModalScreen

from tests.app.sources import ListSource, make_samples
from tests.app.stage import make_app, on_stage, play, until
from tui.screens.overview import OverviewScreen


def is_closed(pilot: Pilot[None]) -> bool:
    return isinstance(pilot.app.screen, OverviewScreen)


async def opened(pilot: Pilot[None], source: ListSource, key: str) -> ModalScreen[object]:
    await play(pilot, source, 3)
    await pilot.press(key)
    await until(pilot, lambda: isinstance(pilot.app.screen, ModalScreen))
    screen = pilot.app.screen
    assert isinstance(screen, ModalScreen)
    return screen


@pytest.mark.parametrize("opener", ["question_mark", "ctrl+p"])
async def test_what_is_closed_twice_closes_nothing_else(opener: str) -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source)) as pilot:
        screen = await opened(pilot, source, opener)
        screen.dismiss()
        screen.dismiss()
        await until(pilot, lambda: is_closed(pilot))
        assert len(pilot.app.screen_stack) == 1


@pytest.mark.parametrize("key", ["pagedown", "pageup", "down", "up", "home", "end"])
async def test_paging_a_palette_that_shows_no_line(key: str) -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source), (80, 24)) as pilot:
        palette = await opened(pilot, source, "ctrl+p")
        assert isinstance(palette, CommandPalette)
        await until(pilot, lambda: palette._list_visible)
        await pilot.press("down")
        await pilot.resize_terminal(10, 3)
        await pilot.pause()
        await pilot.press(key, key)
        await pilot.resize_terminal(80, 24)
        await pilot.press("escape")
        await until(pilot, lambda: is_closed(pilot))


@pytest.mark.parametrize("late", ["_gather_commands", "_watch__list_visible", "_watch__show_busy"])
async def test_a_search_outlives_the_list_of_its_palette(late: str) -> None:
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source)) as pilot:
        palette = await opened(pilot, source, "ctrl+p")
        assert isinstance(palette, CommandPalette)
        await palette.query(CommandList).remove()
        if late == "_gather_commands":
            palette._gather_commands("disk")
        else:
            palette.call_next(getattr(palette, late))
        await until(pilot, lambda: not palette.workers._workers)
        palette.dismiss()
        await until(pilot, lambda: is_closed(pilot))
