"""Stepping back on a live host while sampling goes on: every table and chart is of the time that is shown."""

from __future__ import annotations

import math
from dataclasses import replace

from textual.pilot import Pilot
from textual.widgets import OptionList

from collectors.model import Rows, Sample
from engine.events import Event, EventKind
from tests.app.sources import SECOND_NS, START_NS, ListSource, make_samples, with_load
from tests.app.stage import SIZES, make_app, on_stage, play, screen_text, shown_position, until
from tui.app import LunscopeApp
from tui.history.intervals import IntervalHistory
from tui.screens.load import LoadScreen
from tui.widgets.chart.widget import Chart
from tui.widgets.timeline import Timeline

COUNT = 30


def app_of(pilot: Pilot[None]) -> LunscopeApp:
    app = pilot.app
    assert isinstance(app, LunscopeApp)
    return app


def notices(pilot: Pilot[None]) -> str:
    return "; ".join(notice.message for notice in app_of(pilot)._notifications)


async def at(pilot: Pilot[None], source: ListSource, position: int) -> None:
    await until(pilot, lambda: shown_position(pilot, source) == position)
    await pilot.pause()


async def test_steps_go_back_and_forth_while_samples_arrive() -> None:
    source = ListSource(make_samples(count=COUNT))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, COUNT - 5)
        await pilot.press("comma", "comma", "comma")
        await at(pilot, source, COUNT - 9)
        await until(pilot, lambda: "PAUSED at 00:00:21, 0:03 back, 0:23 kept" in screen_text(pilot))
        assert "00:00:21" in screen_text(pilot).splitlines()[0]
        assert "not recording" in screen_text(pilot)
        await play(pilot, source, 5)
        assert shown_position(pilot, source) == COUNT - 9
        await until(pilot, lambda: "0:08 back, 0:28 kept" in screen_text(pilot))
        await pilot.press("full_stop")
        await at(pilot, source, COUNT - 8)
        await pilot.press("left")
        await at(pilot, source, COUNT - 18)
        await pilot.press("home")
        await at(pilot, source, 1)
        await pilot.press("right")
        await at(pilot, source, 11)
        await pilot.press("shift+left")
        await at(pilot, source, 1)
        await pilot.press("end")
        await at(pilot, source, COUNT - 1)
        await until(pilot, lambda: "LIVE" in screen_text(pilot))


async def test_space_returns_to_the_present() -> None:
    source = ListSource(make_samples(count=COUNT))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, COUNT)
        await pilot.press("comma", "space")
        await at(pilot, source, COUNT - 1)
        assert not app_of(pilot).app_state.transport.paused
        await pilot.press("space", "comma")
        await at(pilot, source, COUNT - 2)


async def test_nothing_moves_before_the_first_sample() -> None:
    async with on_stage(make_app(ListSource(make_samples(count=2)))) as pilot:
        await pilot.press("comma", "full_stop", "shift+left", "right_parenthesis", "right_curly_bracket", "semicolon")
        await pilot.pause()
        assert app_of(pilot).app_state.frame is None
        assert not app_of(pilot).app_state.transport.paused


async def test_charts_end_at_the_moment_shown() -> None:
    source = ListSource(make_samples(count=COUNT))
    async with on_stage(make_app(source), SIZES[1]) as pilot:
        await play(pilot, source, COUNT)
        await pilot.press(*["comma"] * 10)
        await at(pilot, source, COUNT - 11)
        chart = pilot.app.screen.query_one("#iops", Chart)
        await until(pilot, lambda: chart._data is not None and int(chart._data.times_ns[-1]) == source.samples[COUNT - 11].time_ns)
        assert pilot.app.screen.query_one(Timeline).display


async def test_arrows_home_and_end_stay_with_the_table_until_paused() -> None:
    source = ListSource(make_samples(count=COUNT))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, COUNT)
        await pilot.press("left", "home", "end")
        await pilot.pause()
        assert not app_of(pilot).app_state.transport.paused


def without(sample: Sample, name: str) -> Sample:
    """The sample after a disk was unplugged."""
    disk = sample.tables["disk"]
    kept = [position for position, each in enumerate(disk.rows.names) if each != name]
    rows = Rows(tuple(disk.rows.keys[row] for row in kept), tuple(disk.rows.names[row] for row in kept))
    devices = {key: device for key, device in sample.topology.devices.items() if device.name != name}
    return replace(
        sample,
        topology=replace(sample.topology, devices=devices),
        tables={**sample.tables, "disk": replace(disk, rows=rows, values=disk.values[kept])},
    )


async def test_a_disk_that_is_gone_is_shown_as_it_was() -> None:
    samples = list(make_samples(count=COUNT))
    samples[COUNT - 5 :] = [without(sample, "sdc") for sample in samples[COUNT - 5 :]]
    source = ListSource(samples)
    async with on_stage(make_app(source), SIZES[1]) as pilot:
        await play(pilot, source, COUNT)
        assert "ACME MODEL 9" not in screen_text(pilot)
        assert "sdc" not in screen_text(pilot)
        await pilot.press(*["comma"] * 10)
        await at(pilot, source, COUNT - 11)
        assert "sdc" in screen_text(pilot)
        chart = pilot.app.screen.query_one("#iops", Chart)
        assert "sdc" in chart._subject.title
        assert chart._data is not None
        assert int(chart._data.times_ns[-1]) == samples[COUNT - 11].time_ns


async def test_enter_on_an_event_goes_there_if_it_is_kept() -> None:
    source = ListSource(make_samples(count=COUNT))
    async with on_stage(make_app(source)) as pilot:
        app = app_of(pilot)
        app.app_state.events.add([Event(EventKind.NOTE, "long ago", START_NS - SECOND_NS, 0)])
        await play(pilot, source, COUNT)
        await pilot.press("3")
        await until(pilot, lambda: app.screen.query(OptionList) and app.screen.query_one(OptionList).option_count == 4)
        await pilot.press("down", "enter")
        await at(pilot, source, 15)
        await until(pilot, lambda: "4 events, 1 after the moment shown" in screen_text(pilot))
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: "no intervals are kept from before 00:00:01" in notices(pilot))
        assert shown_position(pilot, source) == 15


async def test_events_and_marks_are_reached_by_keys() -> None:
    source = ListSource(make_samples(count=COUNT))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, COUNT)
        between = source.samples[18].time_ns - SECOND_NS // 3
        app_of(pilot).app_state.events.add([Event(EventKind.HOTPLUG, "sdx added", between, 0)])
        await pilot.press("left_parenthesis")
        await at(pilot, source, 25)
        await pilot.press("left_parenthesis")
        await at(pilot, source, 18)
        await pilot.press("left_parenthesis")
        await at(pilot, source, 15)
        await pilot.press("right_parenthesis")
        await at(pilot, source, 18)
        await pilot.press("semicolon")
        await at(pilot, source, 25)
        await pilot.press("colon", "colon")
        await at(pilot, source, 5)
        await pilot.press("colon")
        await until(pilot, lambda: "no earlier mark that is kept, from 00:00:01 on" in notices(pilot))


async def test_the_load_screen_shows_the_knobs_as_they_were() -> None:
    samples = with_load(make_samples(count=COUNT, events=False))
    job = '{"targets": [{"path": "/dev/vdb"}, {"path": "/dev/sdc"}], "queue_depth": 8}'
    started = Event(EventKind.LOAD, "load started", samples[1].time_ns, samples[1].monotonic_ns, {"backend": "io_uring", "job": job})
    samples[2] = replace(samples[2], events=(*samples[2].events, started))
    source = ListSource(samples)
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, COUNT)
        await pilot.press("2")
        await until(pilot, lambda: isinstance(pilot.app.screen, LoadScreen))
        await pilot.press("comma")
        await until(pilot, lambda: "Paused: the load as it was then" in screen_text(pilot))
        await pilot.press(*["comma"] * 20)
        await at(pilot, source, COUNT - 22)
        assert "queue depth 8 -> 16" not in screen_text(pilot)


def test_kept_frames_are_found_by_time_and_by_steps() -> None:
    assert IntervalHistory().frame_at(5) is None
    assert math.isnan(math.nan)
