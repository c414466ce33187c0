"""A resize comes to an end: no screen lays itself out again and again for the size it has."""

from __future__ import annotations

import asyncio
import time

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from engine.running.control import LoadControl
from tests.app.multipath import multipath_samples
from tests.app.sources import ListSource
from tests.app.stage import make_app, on_stage, play

pytestmark = pytest.mark.slow

SIZES = ((60, 20), (10, 3), (120, 40), (61, 20), (30, 10), (220, 60), (79, 24), (20, 60), (220, 3))
MOST_LAYOUTS = 6
"""Layouts of one resize: the screen's, and that of parts that find out their own height only then; each may be followed
by one for the virtual sizes that it set, which Textual always requests, and one for scroll bars."""
QUIET_S = 0.3
PATIENCE_S = 10.0


async def layouts_of(pilot: Pilot[None], size: tuple[int, int], counted: list[str]) -> int:
    counted.clear()
    await pilot.resize_terminal(*size)
    deadline_s, seen = time.monotonic() + PATIENCE_S, -1
    while seen != len(counted) and time.monotonic() < deadline_s:
        seen = len(counted)
        await asyncio.sleep(QUIET_S)
    return len(counted)


@pytest.mark.parametrize("key", list("1234567"))
async def test_a_resize_comes_to_an_end(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    lay_out = Screen._refresh_layout

    def counting(screen: Screen[object], *arguments: object, **options: object) -> None:
        counted.append(type(screen).__name__)
        lay_out(screen, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Screen, "_refresh_layout", counting)
    source = ListSource(multipath_samples(20))
    async with on_stage(make_app(source, LoadControl()), (120, 40)) as pilot:
        await play(pilot, source, 8)
        await pilot.press(key)
        for size in SIZES:
            assert await layouts_of(pilot, size, counted) <= MOST_LAYOUTS, f"{size}: {counted}"
