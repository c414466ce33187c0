"""Moving in time over real session files, as the keys and the timeline do it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import pytest
from textual.pilot import Pilot

from collectors.model import Sample
from collectors.session.writer import SessionWriter
from collectors.sources.replay import ReplaySource
from engine.events import Event, EventKind
from tests.app.sources import SECOND_NS, START_NS, ListSource, make_samples
from tests.app.stage import FROZEN, on_stage, screen_text, until
from tui.app.app import LunscopeApp
from tui.app_input import AppInput
from tui.transport import FASTEST, SLOWEST, LiveTransport, ReplayTransport, transport_of

COUNT = 150


def record(path: Path, samples: Sequence[Sample]) -> Path:
    writer = SessionWriter(path)
    for sample in samples:
        writer.write(sample)
    writer.close()
    return path


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("session") / "night.luns", make_samples(count=COUNT))


def replaying(session: Path) -> tuple[LunscopeApp, ReplaySource]:
    source = ReplaySource(session)
    source.pause(True)
    return LunscopeApp(AppInput(source), settings=FROZEN), source


def second(app: LunscopeApp) -> float:
    """Seconds from the start to the frame on the screen; -1 before the first."""
    return (app.app_state.frame.time_ns - START_NS) / SECOND_NS if app.app_state.frame else -1


async def at(pilot: Pilot[None], app: LunscopeApp, wanted: float) -> None:
    await until(pilot, lambda: second(app) == wanted)
    await pilot.pause()


@pytest.mark.slow
async def test_steps_and_seeks(session: Path) -> None:
    app, source = replaying(session)
    async with on_stage(app) as pilot:
        await at(pilot, app, 0)
        await pilot.press("full_stop", "full_stop")
        await at(pilot, app, 2)
        await pilot.press("comma")
        await at(pilot, app, 1)
        await pilot.press("right", "right", "right")
        await at(pilot, app, 31)
        await pilot.press("end")
        await at(pilot, app, COUNT - 1)
        assert "END" in screen_text(pilot)
        await pilot.press("shift+left")
        await at(pilot, app, COUNT - 61)
        assert "PAUSED 00:01:29 / 00:02:29 1x" in screen_text(pilot)
    source.close()


@pytest.mark.slow
async def test_playing_goes_on_and_faster(session: Path) -> None:
    app, source = replaying(session)
    async with on_stage(app) as pilot:
        await at(pilot, app, 0)
        await pilot.press(*"fffffff")
        assert source.speed == 128
        await pilot.press("space")
        await at(pilot, app, COUNT - 1)
        # At this speed the end would come again before a busy machine looked.
        await pilot.press(*"sssssss")
        await pilot.press("space")
        await until(pilot, lambda: second(app) < COUNT - 1)
    source.close()


@pytest.mark.slow
async def test_charts_show_the_past_of_the_moment(session: Path) -> None:
    app, source = replaying(session)
    async with on_stage(app) as pilot:
        await at(pilot, app, 0)
        await pilot.press("end")
        await at(pilot, app, COUNT - 1)

        def ticks() -> int:
            series = app.app_state.history.series("disks", "sdc@2", app.app_state.transport.position_ns)
            return 0 if series is None else len(series)

        await until(pilot, lambda: ticks() == COUNT)
        await pilot.press("left")
        await at(pilot, app, COUNT - 11)
        await until(pilot, lambda: ticks() == COUNT - 10)
    source.close()


async def test_damage_is_reported(session: Path, tmp_path: Path) -> None:
    whole = session.read_bytes()
    torn = tmp_path / "torn.luns"
    torn.write_bytes(whole[: len(whole) * 3 // 4])
    source = ReplaySource(torn)
    app = LunscopeApp(AppInput(source), settings=FROZEN)
    async with on_stage(app) as pilot:
        await until(pilot, lambda: app.app_state.frame)
        assert source.notice
        await until(pilot, lambda: source.notice[:20] in screen_text(pilot))
    source.close()


def test_what_is_asked_for_in_a_row_adds_up(session: Path) -> None:
    source = ReplaySource(session)
    transport = ReplayTransport(source)
    for _ in range(3):
        transport.move(10)
    assert transport.position_ns == START_NS + 30 * SECOND_NS
    transport.move(-3600)
    assert transport.position_ns == START_NS
    transport.move(1e9)
    assert transport.position_ns == transport.end_ns
    source.close()


def test_speed_stays_within_its_ends(session: Path) -> None:
    source = ReplaySource(session)
    transport = ReplayTransport(source)
    for _ in range(30):
        transport.change_speed(2)
    assert transport.speed == FASTEST
    for _ in range(30):
        transport.change_speed(0.5)
    assert transport.speed == SLOWEST
    source.close()


def test_the_transport_fits_the_source(session: Path) -> None:
    source = ReplaySource(session)
    assert isinstance(transport_of(source), ReplayTransport)
    assert isinstance(transport_of(ListSource(make_samples(count=2))), LiveTransport)
    source.close()


def test_a_step_counts_from_what_was_asked_for_although_it_is_not_shown_yet(session: Path) -> None:
    source = ReplaySource(session)
    transport = ReplayTransport(source)
    transport.seek(START_NS + 7 * SECOND_NS + SECOND_NS // 2)
    transport.step(-1)
    assert transport.position_ns == transport.moment_ns == START_NS + 6 * SECOND_NS
    source.close()


async def test_events_between_samples_are_passed_one_by_one(session: Path) -> None:
    app, source = replaying(session)
    async with on_stage(app) as pilot:
        await at(pilot, app, 0)
        moments = [START_NS + 7 * SECOND_NS + part for part in (SECOND_NS // 4, SECOND_NS // 2)]
        app.app_state.events.add(Event(EventKind.HOTPLUG, f"event {time_ns}", time_ns, 0) for time_ns in moments)

        def seeks(moment_ns: int) -> bool:
            return app.app_state.transport.moment_ns == moment_ns

        await pilot.press("apostrophe")
        await at(pilot, app, 5)
        for moment_ns in moments:
            await pilot.press("apostrophe")
            await until(pilot, functools.partial(seeks, moment_ns))
            await at(pilot, app, 7)
        await pilot.press("apostrophe")
        await at(pilot, app, 15)
        await pilot.press("quotation_mark", "comma", "quotation_mark")
        await at(pilot, app, 5)
    source.close()
