"""A screen that is left before its parts have made theirs is not drawn."""

from __future__ import annotations

import asyncio

from tests.app.sources import ListSource, make_samples
from tests.app.stage import make_app, on_stage, play
from tui.screens.cgroups import CgroupsScreen
from tui.widgets.line import TextLine
from tui.widgets.transport import TransportBar


async def test_a_screen_that_is_left_while_it_is_made_is_not_drawn() -> None:
    source = ListSource(make_samples(count=5))
    app = make_app(source)
    async with on_stage(app) as pilot:
        await play(pilot, source, 1)
        screen = CgroupsScreen(app.app_state)
        app.push_screen(screen)
        while not screen.query(TransportBar):
            await asyncio.sleep(0)
        assert not screen.query_one(TransportBar).query(TextLine)
        screen.remove()
        while not screen.is_mounted:
            await asyncio.sleep(0)
        assert not screen.query_one(TransportBar).query(TextLine)
        screen.refresh_view()
        assert not screen.is_whole
        app.pop_screen()
