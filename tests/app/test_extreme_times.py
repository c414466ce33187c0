"""Recordings whose clock jumps over all times that one may have: screens draw what they can, and never fail."""

from __future__ import annotations

import pytest

from collectors.model import Sample
from collectors.session.format import TIME_END_NS
from engine.replacing import replace
from tests.app.sources import START_NS, ListSource, make_samples
from tests.app.stage import make_app, on_stage, play
from tui.screen_registry import SCREENS

_TIMES = (0, TIME_END_NS - 1, 1, START_NS, TIME_END_NS - 2, TIME_END_NS // 2, 0, START_NS + 1)


@pytest.mark.slow
async def test_screens_stand_any_times() -> None:
    source = ListSource([_retimed(sample, number) for number, sample in enumerate(make_samples(count=24))])
    async with on_stage(make_app(source), size=(120, 40)) as pilot:
        await play(pilot, source, 10)
        for screen in SCREENS:
            if not screen.keys:
                continue
            await pilot.press(screen.keys.split(",")[0])
            await play(pilot, source, 1)
            await pilot.press("left", "right")


def _retimed(sample: Sample, number: int) -> Sample:
    """Give a sample one of the times, and its monotonic clock another one."""
    time_ns, monotonic_ns = (_TIMES[(number + shift) % len(_TIMES)] for shift in (0, 3))
    events = (replace(event, time_ns=time_ns, monotonic_ns=monotonic_ns) for event in sample.events)
    return replace(sample, time_ns=time_ns, monotonic_ns=monotonic_ns, events=tuple(events))
