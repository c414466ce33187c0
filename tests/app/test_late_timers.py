"""A machine that stands still for a moment delays what the app waits for, and loses none of it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from textual import timer
from textual._time import get_time

from tests.app.sources import ListSource, make_samples
from tests.app.stage import make_app, on_stage, play, until


class Stall:
    """Monotonic time that jumps by a second once, after a given number of readings."""

    def __init__(self) -> None:
        self.readings_left = -1
        self._lost_s = 0.0

    def get_time(self) -> float:
        if self.readings_left == 0:
            self._lost_s += 1.0
        self.readings_left -= 1
        return get_time() + self._lost_s


@pytest.mark.parametrize("readings", range(6))
async def test_painting_and_sizes_go_on_after_a_stall(readings: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stall = Stall()
    monkeypatch.setattr(timer, "_time", SimpleNamespace(get_time=stall.get_time))
    source = ListSource(make_samples(count=5))
    async with on_stage(make_app(source), (80, 24)) as pilot:
        app = pilot.app
        await play(pilot, source, 1)
        stall.readings_left = readings
        app.delay_update()
        await until(pilot, lambda: stall.readings_left < 0 and not app._batch_count)
        stall.readings_left = readings
        await pilot.resize_terminal(100, 30)
        await until(pilot, lambda: stall.readings_left < 0 and app.screen.outer_size == (100, 30))
        await pilot.resize_terminal(90, 30)
        await until(pilot, lambda: app.screen.outer_size == (90, 30))
