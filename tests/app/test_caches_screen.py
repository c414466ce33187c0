"""The screen of caches: rows, history, the way to the disk, and what is said where there are none."""

from __future__ import annotations

import pytest

from tests.app.cache_samples import with_caches
from tests.app.sources import ListSource, make_samples
from tests.app.stage import SIZES, make_app, on_stage, play, screen_text
from tui.screens.caches import CachesView
from tui.screens.details import DiskView


@pytest.mark.slow
async def test_caches_with_their_figures_and_the_way_to_the_disk() -> None:
    source = ListSource(with_caches(make_samples(count=20)))
    async with on_stage(make_app(source), SIZES[-1]) as pilot:
        await play(pilot, source, 10)
        await pilot.press("h")
        await pilot.pause()
        assert isinstance(pilot.app.screen, CachesView)
        lines = screen_text(pilot).splitlines()
        full = next(line for line in lines if "sdc dm-writecache" in line)
        assert "▲40.0" in full
        assert "▲100" in full
        whole = next(line for line in lines if line.startswith("▸arc   "))
        assert "90.0" in whole
        assert "100k" in whole
        assert any("mru ghost" in line for line in lines)
        assert "75.0" in next(line for line in lines if "tank zfs" in line)
        assert not any("\x1b" in line for line in lines)
        await pilot.press("home", "enter")
        await pilot.pause()
        assert not isinstance(pilot.app.screen, DiskView)
        row = lines.index(full) - lines.index(whole)
        await pilot.press("home", *(["down"] * row), "enter")
        await pilot.pause()
        assert isinstance(pilot.app.screen, DiskView)
