"""Stepping back on a live host while sampling goes on: every table and chart is of the time that is shown."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from collectors.latency.history import LatencyHistory
from collectors.latency.subjects import LatencySubject
from collectors.model import Frame, Rows, Sample, Step
from collectors.rates import derive
from engine.events import Event, EventKind
from engine.job.file import dump_job
from engine.job.spec import JobSpec, Knobs, TargetSpec
from engine.replacing import replace
from engine.running.control import LoadControl
from tests.app.latency_samples import with_latencies
from tests.app.sources import SECOND_NS, START_NS, ListSource, make_samples, with_load
from tests.app.stage import SIZES, make_app, on_stage, play, said, screen_text, shown_position, until
from tui.app.app import LunscopeApp
from tui.history.intervals import IntervalHistory
from tui.screens.latency.screen import LatencyScreen
from tui.widgets.chart.widget import Chart
from tui.widgets.heatmap.widget import HeatMap
from tui.widgets.timeline import Timeline

COUNT = 30


def app_of(pilot: Pilot[None]) -> LunscopeApp:
    app = pilot.app
    assert isinstance(app, LunscopeApp)
    return app


async def at(pilot: Pilot[None], source: ListSource, position: int) -> None:
    await until(pilot, lambda: shown_position(pilot, source) == position)
    await pilot.pause()


@pytest.mark.slow
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
        await pilot.press("comma", "full_stop", "shift+left", "apostrophe", "right_curly_bracket", "semicolon")
        await pilot.pause()
        assert app_of(pilot).app_state.frame is None
        assert not app_of(pilot).app_state.transport.paused


@pytest.mark.slow
async def test_charts_end_at_the_moment_shown() -> None:
    source = ListSource(make_samples(count=COUNT))
    async with on_stage(make_app(source), SIZES[1]) as pilot:
        await play(pilot, source, COUNT)
        await pilot.press(*["comma"] * 10)
        await at(pilot, source, COUNT - 11)
        chart = pilot.app.screen.query_one("#iops", Chart)
        await until(
            pilot,
            lambda: chart._data is not None and int(chart._data.times_ns[-1]) == source.samples[COUNT - 11].time_ns,
        )
        await until(pilot, lambda: pilot.app.screen.query_one(Timeline).display)


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


@pytest.mark.slow
async def test_a_disk_that_is_gone_is_shown_as_it_was() -> None:
    samples = list(make_samples(count=COUNT))
    samples[COUNT - 5 :] = [without(sample, "sdc") for sample in samples[COUNT - 5 :]]
    source = ListSource(samples)
    async with on_stage(make_app(source), SIZES[1]) as pilot:
        await play(pilot, source, COUNT)
        await until(pilot, lambda: "sdc" not in screen_text(pilot))  # Charts follow the cursor once it rests.
        assert "ACME MODEL 9" not in screen_text(pilot)
        await pilot.press(*["comma"] * 10)
        await at(pilot, source, COUNT - 11)
        assert "sdc" in screen_text(pilot)
        chart = pilot.app.screen.query_one("#iops", Chart)
        assert chart._subject.of == "sdc"
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
        await until(pilot, lambda: said(pilot.app, "no intervals are kept from before 00:00:01"))
        assert shown_position(pilot, source) == 15


async def test_events_and_marks_are_reached_by_keys() -> None:
    source = ListSource(make_samples(count=COUNT))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, COUNT)
        between = source.samples[18].time_ns - SECOND_NS // 3
        app_of(pilot).app_state.events.add([Event(EventKind.HOTPLUG, "sdx added", between, 0)])
        await pilot.press("quotation_mark")
        await at(pilot, source, 25)
        await pilot.press("quotation_mark")
        await at(pilot, source, 18)
        await pilot.press("quotation_mark")
        await at(pilot, source, 15)
        await pilot.press("apostrophe")
        await at(pilot, source, 18)
        await pilot.press("semicolon")
        await at(pilot, source, 25)
        await pilot.press("colon", "colon")
        await at(pilot, source, 5)
        await pilot.press("colon")
        await until(pilot, lambda: said(pilot.app, "no earlier mark that is kept, from 00:00:01 on"))


@pytest.mark.slow
async def test_the_load_screen_shows_the_knobs_as_they_were() -> None:
    samples = with_load(make_samples(count=COUNT, events=False))
    job = JobSpec((TargetSpec("/dev/vdb"), TargetSpec("/dev/sdc")), Knobs(queue_depth=8, stripe_width=2))
    data = {"backend": "io_uring", "job": dump_job(job)}
    started = Event(EventKind.LOAD, "load started", samples[1].time_ns, samples[1].monotonic_ns, data)
    samples[2] = replace(samples[2], events=(*samples[2].events, started))
    source = ListSource(samples)
    control = LoadControl()
    async with on_stage(make_app(source, control, replace(job, knobs=Knobs(queue_depth=99))), SIZES[1]) as pilot:
        await play(pilot, source, COUNT)
        await pilot.press("2")
        await until(pilot, lambda: re.search(r"Queue depth +- +99 +\+", screen_text(pilot)))
        await pilot.press("comma")
        await until(pilot, lambda: re.search(r"Queue depth +16 ", screen_text(pilot)))
        assert "Paused: the load as it was then  running 0:27" in screen_text(pilot)
        assert "queue depth 8 -> 16" in screen_text(pilot)
        await pilot.press(*["comma"] * 20)
        await until(pilot, lambda: re.search(r"Queue depth +8 ", screen_text(pilot)))
        assert "queue depth 8 -> 16" not in screen_text(pilot)
        await pilot.press("end")
        await until(pilot, lambda: re.search(r"Queue depth +- +99 +\+", screen_text(pilot)))
    control.close()


@pytest.mark.slow
async def test_turning_a_knob_returns_to_the_present() -> None:
    source = ListSource(make_samples(count=COUNT))
    control = LoadControl()
    async with on_stage(make_app(source, control, JobSpec(targets=(TargetSpec("/nonexistent/a"),)))) as pilot:
        await play(pilot, source, COUNT)
        await pilot.press("2", "comma", "comma")
        await at(pilot, source, COUNT - 3)
        await pilot.press("plus")
        await at(pilot, source, COUNT - 1)
        assert not app_of(pilot).app_state.transport.paused
    control.close()


@pytest.mark.slow
async def test_latencies_are_of_the_moment_or_said_not_to_be_kept() -> None:
    source = ListSource(with_latencies(make_samples(count=COUNT)))
    async with on_stage(make_app(source)) as pilot:
        app = app_of(pilot)
        app.app_state.history._latencies = LatencyHistory(budget_bytes=1)
        await play(pilot, source, COUNT - 5)
        await pilot.press("4")
        await until(pilot, lambda: isinstance(app.screen, LatencyScreen))
        await play(pilot, source, 5)
        await pilot.press("comma", "comma")
        await at(pilot, source, COUNT - 3)
        await until(pilot, lambda: "up to 00:00:27" in screen_text(pilot))
        assert app.screen.query_one(HeatMap).shown_ns[1] == source.samples[COUNT - 3].time_ns
        await pilot.press(*["comma"] * 10)
        await at(pilot, source, COUNT - 13)
        await until(pilot, lambda: "no latencies are kept from before 00:00:24" in screen_text(pilot))


async def test_peaks_of_what_is_kept_are_reached_by_keys() -> None:
    source = ListSource(with_latencies(make_samples(count=COUNT)))
    async with on_stage(make_app(source), SIZES[1]) as pilot:
        app = app_of(pilot)
        await play(pilot, source, COUNT)
        peaks = app.app_state.peaks_ns()
        assert [(time_ns - START_NS) // SECOND_NS for time_ns in peaks] == [4, 14, 24]
        await pilot.press("left_curly_bracket", "left_curly_bracket", "left_curly_bracket")
        await at(pilot, source, 4)
        await pilot.press("right_curly_bracket")
        await at(pilot, source, 14)
        await until(pilot, lambda: "▴" in screen_text(pilot).splitlines()[-2])


async def test_a_click_on_the_timeline_goes_there() -> None:
    source = ListSource(make_samples(count=COUNT))
    async with on_stage(make_app(source), SIZES[1]) as pilot:
        await play(pilot, source, COUNT)
        await pilot.press("comma")
        timeline = pilot.app.screen.query_one(Timeline)
        await until(pilot, lambda: timeline.display and timeline.size.width > 20)
        await pilot.click(timeline, offset=(timeline.size.width // 2, 0))
        await until(pilot, lambda: 10 <= shown_position(pilot, source) <= 20)


async def test_screens_of_the_present_say_so() -> None:
    source = ListSource(make_samples(count=COUNT))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, COUNT)
        await pilot.press("comma", "C")
        await until(pilot, lambda: "(not this screen)" in screen_text(pilot))
        await pilot.press("1")
        await until(pilot, lambda: "(not this screen)" not in screen_text(pilot) and "PAUSED" in screen_text(pilot))


def history(seconds: int, budget_bytes: int = 1 << 30) -> IntervalHistory:
    kept = IntervalHistory(budget_bytes)
    samples = make_samples(count=seconds)
    for previous, sample in pairwise(samples):
        step = Step(previous, sample)
        kept.add(step, derive(previous, sample))
    return kept


def test_kept_frames_are_found_by_time_and_by_steps() -> None:
    assert IntervalHistory().frame_at(START_NS) is None
    kept = history(20)

    def second(frame: Frame | None) -> float:
        assert frame is not None
        return (frame.time_ns - START_NS) / SECOND_NS

    middle = kept.frame_at(START_NS + 7 * SECOND_NS - 1)
    assert middle is not None
    assert second(middle) == 7
    assert [second(kept.frame_at(START_NS + after * SECOND_NS)) for after in (-5, 0, 7, 99)] == [1, 1, 7, 19]
    assert [second(kept.frame_beside(middle, count)) for count in (-99, -6, -1, 0, 1, 99)] == [1, 1, 6, 7, 8, 19]


def test_the_history_of_a_row_comes_from_kept_frames() -> None:
    kept = history(20)
    series = kept.series("disks", "sdc@2", ("iops", "busy_pct"), START_NS + 4 * SECOND_NS, START_NS + 9 * SECOND_NS)
    assert series is not None
    assert [int(time_ns - START_NS) // SECOND_NS for time_ns in series.times_ns] == [5, 6, 7, 8, 9]
    frame = kept.frame_at(START_NS + 9 * SECOND_NS)
    assert frame is not None
    disks = frame.tables["disks"]
    assert series.values["iops"][-1] == disks.value("iops", disks.rows.positions["sdc@2"])
    assert kept.series("disks", "sdz@9", ("iops",), 0, 1 << 62) is None


async def test_a_frame_no_longer_kept_stays_until_it_is_left() -> None:
    source = ListSource(make_samples(count=COUNT))
    async with on_stage(make_app(source)) as pilot:
        app = app_of(pilot)
        await play(pilot, source, 10)
        await pilot.press("home", "comma", "comma")
        await at(pilot, source, 7)
        app.app_state.history.intervals._budget_bytes = 1
        await play(pilot, source, COUNT - 10)
        assert shown_position(pilot, source) == 7
        await pilot.press("comma")
        await at(pilot, source, COUNT - 1)


async def test_a_subject_without_any_latencies_is_shown_at_an_earlier_moment() -> None:
    source = ListSource(with_latencies(make_samples(count=COUNT)))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, COUNT)
        await pilot.press("4")
        await until(pilot, lambda: isinstance(pilot.app.screen, LatencyScreen))
        screen = pilot.app.screen
        assert isinstance(screen, LatencyScreen)
        screen.follow(LatencySubject("vanished", "load", frozenset({"load:9:9"})))
        await pilot.press("comma", "left")
        await until(pilot, lambda: app_of(pilot).app_state.is_rewound and "vanished" in screen_text(pilot))
