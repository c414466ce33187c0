"""Notices end whenever their time is over, be it in the middle of being shown."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from textual import notifications
from textual.widgets._toast import Toast, ToastHolder, ToastRack

from tests.app.sources import ListSource, make_samples
from tests.app.stage import make_app, play, screen_text, until
from tui.widgets.grid.table import Grid
from tui.widgets.header import KeyLine
from tui.widgets.transport import TransportBar

HANGS_S = 5


class Clock:
    """The time of day, from which a minute is lost after a given number of readings."""

    def __init__(self) -> None:
        self.readings_left = -1
        self._lost_s = 0.0

    def __call__(self) -> float:
        if self.readings_left == 0:
            self._lost_s += 60.0
        self.readings_left -= 1
        return time.time() + self._lost_s


@contextmanager
def interrupted_if_it_hangs() -> Iterator[None]:
    """Break a loop that never comes back to the event loop, which no timeout of it could."""

    def interrupt(*_: object) -> None:
        raise TimeoutError(f"the event loop was held for {HANGS_S} s")

    handler = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(HANGS_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, handler)


@pytest.mark.parametrize("readings", range(4))
async def test_a_notice_may_expire_while_it_is_put_on_another_screen(
    readings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(notifications, "time", clock)
    source = ListSource(make_samples(count=5))
    async with make_app(source).run_test(notifications=True) as pilot:
        await play(pilot, source, 1)
        pilot.app.notify("soon over", timeout=30)
        await until(pilot, lambda: len(pilot.app.screen.query(Toast)) == 1)
        clock.readings_left = readings
        with interrupted_if_it_hangs():
            await pilot.press("5")
            await until(pilot, lambda: clock.readings_left < 0 and not pilot.app.screen.query(Toast))


async def test_a_notice_covers_nothing_and_escape_closes_the_newest() -> None:
    source = ListSource(make_samples(count=5))
    async with make_app(source).run_test(size=(80, 24), notifications=True) as pilot:
        await play(pilot, source, 2)
        screen = pilot.app.screen
        pilot.app.notify("first", timeout=60)
        pilot.app.notify(f"screen saved: {'/folder' * 20}", timeout=60)
        await until(pilot, lambda: len(screen.query(Toast)) == 2 and screen.query_one(TransportBar).region.bottom < 22)
        rack = screen.get_child_by_type(ToastRack).region
        for widget in (screen.query_one(TransportBar), screen.query_one(KeyLine), screen.query_one(Grid)):
            assert widget.region
            assert not widget.region.overlaps(rack)
        await pilot.press("escape")
        await until(pilot, lambda: [toast._notification.message for toast in screen.query(Toast)] == ["first"])
        await pilot.press("escape")
        await until(pilot, lambda: not screen.query(Toast) and screen.query_one(KeyLine).region.bottom == 24)


@pytest.mark.slow
async def test_closed_notices_leave_no_widgets() -> None:
    source = ListSource(make_samples(count=5))
    async with make_app(source).run_test(notifications=True) as pilot:
        await play(pilot, source, 2)
        for number in range(20):
            pilot.app.notify(f"notice {number}", timeout=60)
            await until(pilot, lambda: bool(pilot.app.screen.query(Toast)))
            await pilot.press("escape")
            await until(pilot, lambda: not pilot.app.screen.query(Toast))
        assert len(pilot.app.screen.query(ToastHolder)) <= 2


async def test_the_newest_of_many_is_shown_to_its_last_line() -> None:
    source = ListSource(make_samples(count=5))
    async with make_app(source).run_test(size=(80, 24), notifications=True) as pilot:
        await play(pilot, source, 2)
        for number in range(5):
            pilot.app.notify(f"notice {number}", timeout=60)
        pilot.app.notify("screen saved:\n/folder/screen.svg", timeout=60)
        await until(pilot, lambda: "/folder/screen.svg" in screen_text(pilot))
        assert "notice 4" in screen_text(pilot)
        for _ in range(5):
            await pilot.press("escape")
        await until(pilot, lambda: len(pilot.app.screen.query(Toast)) == 1)
        assert "notice 0" in screen_text(pilot)
