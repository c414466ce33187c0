"""What every test of the terminal screens needs: a clock zone of its own, and a pilot that waits on a busy host too."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from textual.app import App
from textual.notifications import Notification
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

from tests.app.stage import SIZES, is_leaving

QUIET_CHECKS = 3
REPAINT_S = 1 / 40
"""Longer than Textual takes until it paints what changed."""
PATIENCE_S = 60.0


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark pictures and the large window as slow: `make test-fast` asks what the small one says and does."""
    for item in items:
        call = getattr(item, "callspec", None)
        is_large = call is not None and call.params.get("size") == SIZES[1]
        if is_large or "snap_compare" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Show clock times in UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def steady_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no cursor blink: a picture would show it or not, as the time of the host has it."""
    monkeypatch.setattr(Input, "_toggle_cursor", lambda _input: None)


@pytest.fixture(autouse=True)
def lasting_notices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have notices stay in pictures: on a busy host more seconds pass until the picture than they are shown for."""
    if "snap_compare" in request.fixturenames:
        monkeypatch.setattr(Notification, "time_left", property(lambda notice: notice.timeout + PATIENCE_S))


@pytest.fixture(autouse=True)
def patient_pilot(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the pilot wait until no message waits: by itself it goes by CPU time, of which a busy host gives little.

    Pictures keep the pilot's own waits beside that, as what they show has timers, too.
    """
    press, pause = Pilot.press, Pilot.pause

    async def patient_press(pilot: Pilot[Any], *keys: str) -> None:
        for key in keys:
            await press(pilot, key)
            await _worked_off(pilot.app)

    async def patient_pause(pilot: Pilot[Any], delay: float | None = None) -> None:
        await pause(pilot, delay)
        await _worked_off(pilot.app)
        pilot.app.screen._on_timer_update()

    async def at_once(min_sleep: float = 0.0, max_sleep: float = 0.0) -> None:
        await asyncio.sleep(0)

    async def until_repainted(min_sleep: float = 0.0, max_sleep: float = 0.0) -> None:
        await asyncio.sleep(REPAINT_S)

    if "snap_compare" not in request.fixturenames:
        monkeypatch.setattr(Pilot, "_wait_for_screen", _handled)
        monkeypatch.setattr("textual.app.wait_for_idle", at_once)
        monkeypatch.setattr("textual.pilot.wait_for_idle", until_repainted)
    monkeypatch.setattr(Pilot, "press", patient_press)
    monkeypatch.setattr(Pilot, "pause", patient_pause)


async def _handled(pilot: Pilot[Any], timeout: float = PATIENCE_S) -> bool:
    """Wait for what the app and its screen do; False after an error. Textual's own wait sends each widget a message."""
    events = {pump: asyncio.Event() for pump in (pilot.app, *pilot.app.screen_stack[-1:])}
    ended: asyncio.Future[Any] = asyncio.create_task(pilot.app._exception_event.wait())
    handled: asyncio.Future[Any] = asyncio.gather(
        *(event.wait() for pump, event in events.items() if pump.call_later(event.set))
    )
    await asyncio.wait({ended, handled}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    has_error = ended.done()
    ended.cancel()
    handled.cancel()
    return not has_error


async def _worked_off(app: App[Any]) -> None:
    """Wait until no message waits; those of an app that has ended wait for ever."""
    deadline_s, quiet_checks = time.monotonic() + PATIENCE_S, 0
    while quiet_checks < QUIET_CHECKS and not is_leaving(app) and time.monotonic() < deadline_s:
        await asyncio.sleep(0.001)
        waiting = any(pump.message_queue_size or pump._next_callbacks for pump in (app, *app._registry))
        waiting = waiting or any(_has_work(screen) for screen in app.screen_stack[-1:])
        quiet_checks = 0 if waiting else quiet_checks + 1


def _has_work(screen: Screen[Any]) -> bool:
    """Whether the screen has callbacks for after its layout, or a widget in sight will ask for one once it is idle."""
    return bool(screen._callbacks) or any(widget._layout_required for widget in screen._compositor.visible_widgets)
