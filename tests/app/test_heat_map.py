"""The heat map: what is drawn where, cursor, zoom, marks, and that no I/O hides."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from rich.cells import cell_len
from textual import on
from textual.pilot import Pilot

from collectors.latency.ticks import LatencyTicks
from engine.events import Event, EventKind
from tests.app.shows import OneWidget, text_of
from tests.app.stage import drawn_again
from tests.unit.latency_ticks import SECOND_NS, START_NS, tick, ticks_of, track
from tui.text.glyphs import ASCII, UNICODE, Glyphs
from tui.widgets.heatmap.legend import latency_text
from tui.widgets.heatmap.model import (
    SHORTEST_NS,
    HeatPicture,
    TimeWindow,
    fitted_range,
    label_values_ns,
    round_up_count,
    zoomed_range,
)
from tui.widgets.heatmap.widget import HeatMap

FAST, SLOW = 100_000, 40_000_000
STEADY = [[FAST] * 100] * 60


class Heard(OneWidget):
    """Remembers which interval the cursor came to."""

    @on(HeatMap.Moved)
    def remember(self, message: HeatMap.Moved) -> None:
        self.heard.append(message.heat_map.interval_ns)


def _at(seconds: float) -> int:
    return START_NS + round(seconds * SECOND_NS)


def _show(heat: HeatMap, ticks: LatencyTicks, events: Sequence[Event] = (), span_s: int = 60) -> None:
    heat.show(ticks, ("read",), events, int(ticks.times_ns[-1]), span_s * SECOND_NS)


@asynccontextmanager
async def shown(
    seconds: Sequence[Sequence[int]],
    events: Sequence[Event] = (),
    size: tuple[int, int] = (66, 22),
    glyphs: Glyphs = UNICODE,
) -> AsyncIterator[tuple[HeatMap, Pilot[None], Heard]]:
    heat = HeatMap()
    app = Heard(heat, glyphs=glyphs)
    async with app.run_test(size=size) as pilot:
        _show(heat, ticks_of(seconds), events)
        heat.focus()
        await pilot.pause()
        yield heat, pilot, app


def _rows_with(lines: Sequence[str], glyphs: str) -> list[int]:
    return [y for y, line in enumerate(lines[1:-1], 1) if any(glyph in line[6:] for glyph in glyphs)]


# scales


def test_the_axis_ends_at_round_latencies_and_closes_up_late() -> None:
    first = fitted_range(31_000, 4_200_000, None)
    assert (first.low_ns, first.high_ns) == pytest.approx((20_000, 5_000_000))
    assert fitted_range(31_000, 1_100_000, first) is first
    assert fitted_range(31_000, 400_000, first).high_ns == pytest.approx(500_000)
    assert fitted_range(31_000, 5_100_000, first).high_ns == pytest.approx(10_000_000)
    narrow = fitted_range(100_000, 100_700, None)
    assert narrow.high_ns / narrow.low_ns == pytest.approx(10)


@pytest.mark.parametrize("centre_ns", [math.inf, math.nan, 1e300, 0.0, None])
def test_zooming_around_a_bucket_without_bounds_keeps_the_axis_finite(centre_ns: float | None) -> None:
    span = fitted_range(1e4, 9e6, None)
    for factor in (0.5, 0.5, 2.0):
        span = zoomed_range(span, centre_ns, factor)
        assert 0 < span.low_ns < span.high_ns < math.inf
        assert len(label_values_ns(span, 20)) >= 2


def test_zoom_keeps_what_it_is_around_in_sight() -> None:
    wide = fitted_range(1_000, 1e9, None)
    close = zoomed_range(zoomed_range(wide, 3e6, 0.5), 3e6, 0.5)
    assert close.low_ns < 3e6 < close.high_ns
    assert close.high_ns / close.low_ns == pytest.approx((wide.high_ns / wide.low_ns) ** 0.25)
    for _ in range(40):
        close = zoomed_range(close, 3e6, 0.5)
    assert close.low_ns < 3e6 < close.high_ns


def test_labels_are_round_and_never_missing() -> None:
    assert label_values_ns(fitted_range(1e4, 9e6, None), 30) == pytest.approx(
        [1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7]
    )
    assert label_values_ns(fitted_range(1e4, 9e6, None), 10) == pytest.approx([1e4, 1e5, 1e6, 1e7])
    assert len(label_values_ns(zoomed_range(fitted_range(1e4, 9e6, None), 3.3e5, 0.01), 10)) == 2
    assert [round_up_count(count) for count in (1, 3, 9, 10, 11)] == [1, 5, 10, 10, 20]


@pytest.mark.parametrize(
    ("latency_ns", "text"), [(0.0, "0 ms"), (64.0, "64ns"), (999.0, "999ns"), (1e3, "0.001 ms"), (2.5e6, "2.50 ms")]
)
def test_latencies_below_a_thousandth_are_reported_in_nanoseconds(latency_ns: float, text: str) -> None:
    assert latency_text(latency_ns) == text


def test_the_window_follows_until_it_is_fixed() -> None:
    window = TimeWindow()
    window.follow(_at(100), 60 * SECOND_NS)
    assert window.bounds() == (_at(40), _at(100))
    window.zoom(0.5, None)
    assert window.bounds() == (_at(70), _at(100))
    window.follow(_at(110), 70 * SECOND_NS)
    assert window.bounds() == (_at(80), _at(110)), "a closer look stays while there is ever more to show"
    window.zoom(0.5, _at(85))
    start_ns, end_ns = window.bounds()
    assert start_ns < _at(85) < end_ns
    assert window.is_fixed
    window.follow(_at(120), 60 * SECOND_NS)
    assert window.bounds() == (start_ns, end_ns)
    window.reach(_at(20))
    assert window.bounds()[0] < _at(20) <= window.bounds()[1]
    for _ in range(12):
        window.zoom(0.5, _at(20))
    assert window.bounds()[1] - window.bounds()[0] == SHORTEST_NS
    window.reset()
    assert window.bounds() == (_at(60), _at(120))
    window.follow(_at(10), 60 * SECOND_NS)
    assert window.bounds() == (_at(-50), _at(10))


# the picture


async def test_every_io_shows_at_its_time_and_latency() -> None:
    seconds = [list(second) for second in STEADY]
    seconds[20] = [*seconds[20], SLOW]
    async with shown(seconds) as (heat, _, _):
        heat.toggle_lines()
        lines = text_of(heat)
        dots = [(y, line.index("·", 6)) for y, line in enumerate(lines[1:-1], 1) if "·" in line[6:]]
        assert len(dots) == 1
        assert abs(dots[0][1] - (6 + 20)) <= 2
        full = _rows_with(lines, "█")
        assert len(full) == 1
        assert full[0] > dots[0][0]
        assert lines[full[0]][6:].count("█") >= 56


async def test_lines_of_percentiles_and_peaks_are_drawn_in_front() -> None:
    seconds = [[FAST] * 150 + [SLOW]] * 60
    async with shown(seconds) as (heat, _, _):
        lines = text_of(heat)
        assert len(_rows_with(lines, "▴")) == 1
        assert _rows_with(lines, "▴")[0] < _rows_with(lines, "═")[0]
        heat.toggle_lines()
        assert not _rows_with(text_of(heat), "▴─═")


async def test_a_gap_is_not_a_time_without_ios() -> None:
    made = [tick(at, [(0, 0, FAST)] * 50) for at in range(60) if not 20 <= at < 30]
    made[35:40] = [tick(at, []) for at in range(45, 50)]
    heat = HeatMap()
    async with OneWidget(heat).run_test(size=(66, 22)) as pilot:
        _show(heat, track(made).view())
        await pilot.pause()
        top = text_of(heat)[2]
        assert top.count("┄") == pytest.approx(10, abs=1)
        assert "┄" not in top[6 + 40 :]


async def test_events_are_marked_and_reported_where_they_hide_nothing() -> None:
    events = [Event(EventKind.KNOB, "queue depth 8 -> 16", _at(10), 0)]
    async with shown(STEADY, events) as (heat, _, _):
        lines = text_of(heat)
        assert "◆" in lines[-1]
        assert "┊queue depth 8 -> 16" in lines[1]
        assert abs(lines[1].index("┊") - lines[-1].index("◆")) == 0


async def test_ascii_draws_with_plain_marks() -> None:
    async with shown([[FAST] * 300 + [SLOW]] * 60, glyphs=ASCII) as (heat, _, _):
        lines = text_of(heat)
        assert all(line.isascii() for line in lines)
        assert _rows_with(lines, "^")
        heat.toggle_lines()
        assert _rows_with(text_of(heat), "@")


async def test_says_why_there_is_nothing() -> None:
    heat = HeatMap()
    async with OneWidget(heat).run_test(size=(66, 22)) as pilot:
        heat.show_nothing("no exact tier here")
        await pilot.pause()
        assert "no exact tier here" in "".join(text_of(heat))


@pytest.mark.parametrize("size", [(24, 5), (12, 3), (7, 2), (5, 1), (200, 60)])
@pytest.mark.parametrize("seconds", [[[]], [[1]], [[2**45, 1]], [[FAST]] * 700])
async def test_any_size_and_figures_fill_exactly(size: tuple[int, int], seconds: list[list[int]]) -> None:
    async with shown(seconds, [Event(EventKind.NOTE, "日本 \x1b[31m", _at(0), 0)], size=size) as (heat, pilot, _):
        await pilot.press("left", "up", "m", "left")
        lines = text_of(heat)
        assert [cell_len(line) for line in lines] == [size[0]] * size[1]
        assert "\x1b" not in "".join(lines)


async def test_unchanged_figures_send_nothing() -> None:
    async with shown(STEADY) as (heat, pilot, _):
        await pilot.pause()
        drawn_again(heat)
        _show(heat, ticks_of(STEADY))
        assert not drawn_again(heat)
        _show(heat, ticks_of([*STEADY[:-1], [FAST] * 100 + [SLOW]]))
        assert drawn_again(heat)


# cursor, marks, zoom


def picture_of(heat: HeatMap) -> HeatPicture | None:
    """What is drawn, which is another object once the data are binned again."""
    return heat._picture


async def test_data_are_binned_again_only_for_other_data_time_latencies_or_size() -> None:
    async with shown(STEADY) as (heat, pilot, _):

        async def bins_anew(*keys: str) -> bool:
            before = picture_of(heat)
            for key in keys:
                await pilot.press(key)
            heat.draw_lines()
            return picture_of(heat) is not before

        assert not await bins_anew("left", "left", "up", "escape")
        heat.toggle_lines()
        heat.toggle_mark()
        assert not await bins_anew("left")
        changes: Sequence[Callable[[], None]] = (
            lambda: heat.zoom_time(2.0),
            lambda: heat.zoom_latency(0.5),
            lambda: _show(heat, ticks_of(STEADY)),
            heat.start_over,
        )
        for change in changes:
            before = picture_of(heat)
            change()
            heat.draw_lines()
            assert picture_of(heat) is not before
        before = picture_of(heat)
        await pilot.resize_terminal(70, 24)
        await pilot.pause()
        assert picture_of(heat) is not before


async def test_the_cursor_begins_at_the_newest_peak_and_tells_its_cell() -> None:
    async with shown([*STEADY, [FAST] * 99 + [SLOW]], size=(130, 22)) as (heat, pilot, app):
        await pilot.press("left")
        assert heat.interval_ns == (_at(59), _at(60))
        title = text_of(heat)[0]
        assert "00:01:00" in title
        assert "1 of 100 I/Os, 1.0 %, up to p100, peak 40.0 ms" in title
        await pilot.press(*["down"] * 30)
        assert "0 of 100 I/Os" in text_of(heat)[0] or "99 of 100" in text_of(heat)[0]
        await pilot.press("left", "left")
        assert heat.interval_ns == (_at(57), _at(58))
        assert app.heard == [(_at(59), _at(60)), (_at(58), _at(59)), (_at(57), _at(58))]
        await pilot.press("escape")
        assert heat.interval_ns is None


async def test_a_moment_is_found_in_the_column_that_holds_it() -> None:
    seconds = [list(second) for second in STEADY]
    seconds[30] = [*seconds[30], SLOW]
    for width in range(30, 66, 7):
        async with shown(seconds, size=(width, 22)) as (heat, pilot, _):
            heat.go_to(_at(30), SLOW)
            await pilot.pause()
            interval = heat.interval_ns
            assert interval is not None
            assert interval[0] < _at(30) <= interval[1]


async def test_a_click_puts_the_cursor_there() -> None:
    async with shown(STEADY) as (heat, pilot, _):
        await pilot.click(heat, offset=(6 + 30, 10))
        assert heat.interval_ns is not None
        assert abs(heat.interval_ns[1] - _at(30)) <= SECOND_NS


async def test_the_cursor_goes_on_beyond_what_is_shown() -> None:
    async with shown([[FAST]] * 200) as (heat, pilot, _):
        await pilot.press(*["shift+left"] * 8)
        assert heat.interval_ns is not None
        assert heat.interval_ns[1] < _at(140)
        assert heat.shown_ns[0] < heat.interval_ns[1] <= heat.shown_ns[1]
        await pilot.press(*["shift+right"] * 12)
        assert heat.interval_ns[1] == _at(199)


async def test_a_range_is_marked_from_the_mark_to_the_cursor() -> None:
    async with shown(STEADY, size=(130, 22)) as (heat, pilot, _):
        await pilot.press("left", "left", "left")
        heat.toggle_mark()
        await pilot.press("left", "left")
        assert heat.marked_ns == (_at(54), _at(57))
        await pilot.press("escape")
        assert heat.marked_ns == (_at(56), _at(59))
        heat.toggle_mark()
        assert heat.marked_ns is None


async def test_zoom_in_time_and_latency_is_around_the_cursor() -> None:
    seconds = [list(second) for second in STEADY]
    seconds[20] = [*seconds[20], SLOW]
    async with shown(seconds) as (heat, pilot, _):
        heat.go_to(_at(20), SLOW)
        for _ in range(2):
            heat.zoom_time(0.5)
            heat.zoom_latency(0.5)
        await pilot.pause()
        assert heat.shown_ns[1] - heat.shown_ns[0] == 15 * SECOND_NS
        assert heat.interval_ns == (_at(19), _at(20))
        lines = text_of(heat)
        assert "1 of 101 I/Os" in lines[0]
        labels = [float(line[:5]) for line in lines[1:-1] if line[:5].strip()]
        assert 1 < min(labels) < 40 < max(labels) * 1.01
        heat.zoom_off()
        assert heat.shown_ns[1] - heat.shown_ns[0] == 60 * SECOND_NS


async def test_what_lies_beyond_a_zoomed_picture_is_shown_to_be_there() -> None:
    async with shown([[FAST] * 99 + [SLOW]] * 60) as (heat, pilot, _):
        heat.go_to(_at(30), FAST)
        for _ in range(3):
            heat.zoom_latency(0.5)
        await pilot.pause()
        assert text_of(heat)[1].count("▲") >= 50


@pytest.mark.parametrize("key", ["left", "right", "up", "down", "shift+left"])
async def test_keys_between_data_without_intervals_and_their_picture(key: str) -> None:
    async with shown(STEADY) as (heat, pilot, _):
        before = picture_of(heat)
        heat.show(ticks_of(STEADY).between(0, 1), ("read",), (), _at(59), 60 * SECOND_NS)
        heat._picture = before
        await pilot.press(key)
        assert heat.is_attached
