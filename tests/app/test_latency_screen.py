"""The latency screen: what it follows, where its keys lead, and the way from a peak to its I/Os."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from collectors.latency.cache_bands import CacheBands
from collectors.latency.heat_map import LatencyRange
from collectors.latency.history import LatencyHistory
from collectors.latency.subjects import LatencySubject
from collectors.model import Step
from tests.app.latency_samples import LOAD_ROWS, with_latencies
from tests.app.sources import SECOND_NS, ListRecording, ListSource, make_samples
from tests.app.stage import make_app, on_stage, play, rewind_to, screen_text, shown_position, until
from tui.app.app import LunscopeApp
from tui.screens.latency.screen import LatencyScreen
from tui.screens.shared.chooser import Chooser
from tui.widgets.chart.widget import Chart
from tui.widgets.heatmap.widget import HeatMap
from tui.widgets.line_list import LineList

TICKS = 40


def _latency(app: LunscopeApp) -> LatencyScreen:
    assert isinstance(app.screen, LatencyScreen)
    return app.screen


async def _opened(pilot: Pilot[None], source: ListSource) -> LatencyScreen:
    if isinstance(source, ListRecording):
        await rewind_to(pilot, source, TICKS - 1)
    else:
        await play(pilot, source, TICKS)
    await pilot.press("4")
    await pilot.pause()
    app = pilot.app
    assert isinstance(app, LunscopeApp)
    return _latency(app)


@pytest.fixture(params=[ListSource, ListRecording])
def source(request: pytest.FixtureRequest) -> ListSource:
    kind: type[ListSource] = request.param
    return kind(with_latencies(make_samples(count=TICKS)))


@pytest.mark.slow
async def test_follows_the_load_at_first_live_and_in_replay(source: ListSource) -> None:
    async with on_stage(make_app(source), (110, 40)) as pilot:
        await _opened(pilot, source)
        text = screen_text(pilot)
        assert "Latency of the load" in text
        assert "whole time of reads and writes" in text
        assert "max 31.0" in text
        assert "◆" in text
        assert "31.0 ms  load on /dev/sdc read" in text


@pytest.mark.slow
async def test_direction_and_marked_range_change_the_figures(source: ListSource) -> None:
    async with on_stage(make_app(source), (110, 40)) as pilot:
        screen = await _opened(pilot, source)
        await pilot.press("d", "d")
        await pilot.pause()
        assert "whole time of writes" in screen_text(pilot)
        assert "max 31.0" not in screen_text(pilot)
        await pilot.press("d", "left", "left", "m", "shift+left")
        await pilot.pause()
        start_ns, end_ns = screen.heat.marked_ns or (0, 0)
        assert end_ns > start_ns
        assert f"marked 0:{(end_ns - start_ns) // SECOND_NS:02}" in screen_text(pilot)


@pytest.mark.slow
async def test_peaks_lead_to_their_moment_largest_first(source: ListSource) -> None:
    async with on_stage(make_app(source), (110, 40)) as pilot:
        screen = await _opened(pilot, source)
        await pilot.press("n")
        await pilot.pause()
        first = screen.heat.interval_ns
        assert first is not None
        assert "of " in screen_text(pilot)
        assert "peak 31.0 ms" in screen_text(pilot)
        await pilot.press("n")
        await pilot.pause()
        assert screen.heat.interval_ns != first
        assert screen.choice.subject is not None
        assert screen.choice.subject.title == "the load"


@pytest.mark.slow
async def test_enter_on_a_peak_goes_there_and_i_shows_its_ios(source: ListSource) -> None:
    async with on_stage(make_app(source), (110, 40)) as pilot:
        screen = await _opened(pilot, source)
        screen.query_one("#peaks LineList", LineList).focus()
        await pilot.press("down", "enter")
        await pilot.pause()
        assert isinstance(pilot.app.focused, HeatMap)
        await pilot.press("i")
        await pilot.pause()
        text = screen_text(pilot)
        assert "4711 postgres" in text
        assert "123456789" in text
        assert "29.0" in text
        assert text.count("4711 postgres") == 1
        assert "cgroup 99" in text


@pytest.mark.slow
async def test_from_a_chart_to_the_ios_of_its_moment_in_one_key() -> None:
    source = ListSource(with_latencies(make_samples(count=TICKS)))
    async with on_stage(make_app(source), (110, 40)) as pilot:
        await play(pilot, source, TICKS)
        chart = pilot.app.screen.query_one("#latency", Chart)
        chart.focus()
        chart.inspect(source.samples[24].time_ns)
        await pilot.pause()
        await pilot.press("i")
        await pilot.pause()
        text = screen_text(pilot)
        assert "Latency of sdc" in text
        assert "no histograms of disks" in text
        assert "4711 postgres" in text
        assert text.count("4711 postgres") == 1


@pytest.mark.slow
async def test_a_target_is_picked_by_typing_part_of_its_name(source: ListSource) -> None:
    async with on_stage(make_app(source), (110, 40)) as pilot:
        screen = await _opened(pilot, source)
        await pilot.press("c")
        await until(pilot, lambda: isinstance(pilot.app.screen, Chooser) and pilot.app.screen.query(Input))
        await pilot.press(*"vdb", "enter")
        await until(pilot, lambda: pilot.app.screen is screen)
        await until(pilot, lambda: "Latency of target /dev/vdb" in screen_text(pilot))
        assert "max 31.0" not in screen_text(pilot)


@pytest.mark.slow
async def test_enter_takes_a_recording_to_the_cursor() -> None:
    source = ListRecording(with_latencies(make_samples(count=TICKS)))
    async with on_stage(make_app(source), (110, 40)) as pilot:
        screen = await _opened(pilot, source)
        await pilot.press("n")
        await pilot.pause()
        interval = screen.heat.interval_ns
        assert interval is not None
        await pilot.press("enter")
        times = [sample.time_ns for sample in source.samples]
        await until(pilot, lambda: shown_position(pilot, source) == times.index(interval[1]))


@pytest.mark.slow
async def test_a_held_picture_stands_still_while_data_keep_coming() -> None:
    source = ListSource(with_latencies(make_samples(count=TICKS)))
    async with on_stage(make_app(source), (110, 40)) as pilot:
        await play(pilot, source, TICKS - 10)
        await pilot.press("4", "space")
        await pilot.pause()
        assert isinstance(pilot.app, LunscopeApp)
        shown = _latency(pilot.app).heat.shown_ns
        await play(pilot, source, 10)
        assert _latency(pilot.app).heat.shown_ns == shown


async def test_says_what_is_missing_where_there_are_no_latencies() -> None:
    source = ListSource(make_samples(count=TICKS))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 8)
        await pilot.press("4")
        await pilot.pause()
        assert "need the exact tier" in screen_text(pilot)
        await pilot.press("c", "t", "d", "n", "m", "plus", "left_square_bracket")
        assert isinstance(pilot.app.screen, LatencyScreen)


@pytest.mark.slow
async def test_the_waterfall_tells_who_owns_the_slowest_ios(source: ListSource) -> None:
    async with on_stage(make_app(source), (110, 40)) as pilot:
        await _opened(pilot, source)
        await pilot.press("n", "p", "p")
        await until(pilot, lambda: "Slowest I/Os seen from both sides" in screen_text(pilot))
        text = screen_text(pilot)
        assert "service 29.0 ms" in text
        assert "queue 1.50 ms" in text
        assert "reap 0.480 ms" in text
        assert "/dev/sdc" in text


# the past that is kept


def _fill(past: LatencyHistory, steps: list[Step]) -> None:
    for step in steps:
        past.add(step)


def test_another_subject_reaches_as_far_back_as_the_budget() -> None:
    steps = list(ListRecording(with_latencies(make_samples(count=TICKS))).window(2**62, TICKS))
    whole, small = LatencyHistory(), LatencyHistory(budget_bytes=18_000)
    for past in (whole, small):
        assert past.follow(LatencySubject("all", "load", frozenset()))
        _fill(past, steps)
    one = LatencySubject("one", "load", frozenset({LOAD_ROWS.keys[0]}))
    assert whole.follow(one)
    assert not small.follow(one)
    kept = [len(past.ticks() or ()) for past in (whole, small)]
    assert kept[0] == TICKS - 1
    assert 0 < kept[1] < TICKS // 2
    assert small.lacks_past
    other = small.emptied()
    _fill(other, steps)
    small.take_over(other)
    assert not small.lacks_past
    assert len(small.ticks() or ()) == TICKS - 1


def test_a_first_sample_belongs_to_no_known_interval() -> None:
    past = LatencyHistory()
    past.follow(LatencySubject("all", "load", frozenset()))
    _fill(past, list(ListRecording(with_latencies(make_samples(count=TICKS))).window(2**62, TICKS))[:1])
    assert past.ticks() is None
    assert past.peaks(0, 2**62, 5) == []
    assert past.slow_ios(0, 2**62, 5) == []


@pytest.mark.slow
async def test_bands_of_a_cache_are_named_in_the_map(source: ListSource) -> None:
    async with on_stage(make_app(source), (110, 40)) as pilot:
        screen = await _opened(pilot, source)
        assert "cache hit band" not in screen_text(pilot)
        screen.heat.show_bands(CacheBands(LatencyRange(2e5, 3e5), LatencyRange(8e6, 1e7), 0.9))
        await until(pilot, lambda: "cache hit band" in screen_text(pilot))
        lines = screen_text(pilot).splitlines()
        hit, miss = (
            next(at for at, line in enumerate(lines) if text in line) for text in ("cache hit band", "miss band")
        )
        assert miss < hit
