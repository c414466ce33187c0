"""Charts of the row under the cursor: with a single key at once, with a held one once the cursor rests."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from tests.app.sources import ListSource, make_samples
from tests.app.stage import make_app, on_stage, play, until
from tui.screens.shared import base
from tui.widgets.chart.widget import Chart

DISKS = tuple(f"sd{letter}" for letter in "abcdef")


def charted(pilot: Pilot[None]) -> str:
    """Name of the disk whose figures the first chart shows."""
    return pilot.app.screen.query(Chart).first()._subject.of


async def test_a_single_key_shows_the_charts_of_the_new_row(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ListSource(make_samples(DISKS, count=3))
    async with on_stage(make_app(source), size=(120, 40)) as pilot:
        await play(pilot, source, 3)
        assert charted(pilot) == "sdf"
        assert isinstance(pilot.app.screen, base.View)
        pilot.app.screen._cursor_moved_s -= 1.0  # The frames put the cursor on their hottest disk.
        monkeypatch.setattr(base.View, "set_timer", no_timer)
        await pilot.press("down")
        assert charted(pilot) == "sde"


async def test_a_held_key_shows_charts_once_the_cursor_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ListSource(make_samples(DISKS, count=3))
    async with on_stage(make_app(source), size=(120, 40)) as pilot:
        await play(pilot, source, 3)
        monkeypatch.setattr(base, "CURSOR_REST_S", 60.0)
        await pilot.press("down", "down", "down")
        assert charted(pilot) == "sde"
        monkeypatch.setattr(base, "CURSOR_REST_S", 0.01)
        assert isinstance(pilot.app.screen, base.View)
        pilot.app.screen._cursor_moved_s += 1.0  # As if a key came just before the next one.
        await pilot.press("down")
        await until(pilot, lambda: charted(pilot) == "sdb")


def no_timer(*_arguments: object, **_named: object) -> None:
    raise AssertionError("charts wait")
