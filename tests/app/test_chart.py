"""The chart: scales, curves and marks as text, then keys, mouse and styles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from rich.cells import cell_len
from textual import on
from textual.pilot import Pilot

from collectors.field import Unit
from engine.events import Event, EventKind
from tests.app.shows import OneWidget, text_of
from tests.app.stage import drawn_again
from tui.kept import AxisChoice
from tui.text.glyphs import ASCII, UNICODE, Glyphs
from tui.widgets.chart.axes import clock_ticks, envelope, linear_axis, log_axis, scale_to, tick_label
from tui.widgets.chart.plot import BLANK, first_true, owner_runs, pack, trace
from tui.widgets.chart.widget import Chart, ChartSeries

NAN = math.nan
SECOND = 1_000_000_000
START = 1_699_999_980 * SECOND


class Heard(OneWidget):
    """Remembers what the chart tells."""

    @on(Chart.Inspected)
    def remember(self, message: Chart.Inspected) -> None:
        self.heard.append(message.time_ns)


def _times(count: int, step_s: float = 1.0) -> NDArray[np.int64]:
    return START + (np.arange(count) * step_s * SECOND).astype(np.int64)


def _event(seconds: int, text: str, kind: EventKind = EventKind.KNOB) -> Event:
    return Event(kind, text, START + seconds * SECOND, 0)


def _show(chart: Chart, values: Sequence[float], events: Sequence[Event] = ()) -> None:
    series = ChartSeries("read", np.array(values, dtype=np.float64), "chart--read")
    chart.show(_times(len(values)), [series], events)


# scales


@given(st.floats(1e-6, 1e15), st.sampled_from(list(Unit)), st.integers(1, 60))
def test_axis_holds_the_largest_value_and_little_more(largest: float, unit: Unit, rows: int) -> None:
    axis = linear_axis(largest, unit, rows)
    assert axis.high >= largest * (1 - 1e-9)
    assert axis.high <= largest * 2.1 or axis.high in (0.01, 100)
    assert axis.ticks[0] == 0
    assert axis.ticks[-1] == pytest.approx(axis.high)
    assert all(cell_len(tick_label(tick, unit)) <= 5 for tick in axis.ticks)


_FACTORS = {"k": 1e3, "s": 1e3, "h": 3.6e6, "d": 8.64e7}
_PREFIXES = "KMGTPE"


def _value_of(label: str, unit: Unit) -> float:
    """What a label says."""
    number, suffix = label.rstrip("".join(_FACTORS) + _PREFIXES), label[-1]
    binary = unit in (Unit.BYTES, Unit.BYTES_PER_SECOND)
    power = (1024.0 if binary else 1e3) ** (_PREFIXES.find(suffix) + 1)
    return float(number) * (1.0 if number == label else _FACTORS.get(suffix, power))


@given(st.floats(1e-6, 1e11), st.sampled_from(list(Unit)), st.integers(1, 60))
def test_labels_are_the_values_of_their_ticks(largest: float, unit: Unit, rows: int) -> None:
    smallest = largest * 10.0 ** -(rows % 9)
    for tick in (*linear_axis(largest, unit, rows).ticks, *log_axis(smallest, largest, rows).ticks):
        assert _value_of(tick_label(tick, unit), unit) == pytest.approx(tick, rel=0.003, abs=0)


def test_axis_grows_at_once_and_shrinks_late() -> None:
    wide = linear_axis(4.9, Unit.MILLISECONDS, 20)
    assert wide.high == 5
    assert linear_axis(3.95, Unit.MILLISECONDS, 20, wide).high == 5
    assert linear_axis(3.0, Unit.MILLISECONDS, 20, wide).high == 3
    assert linear_axis(5.1, Unit.MILLISECONDS, 20, wide).high == 6


def test_ticks_are_round_in_the_unit() -> None:
    def labels(largest: float, unit: Unit) -> list[str]:
        return [tick_label(tick, unit) for tick in linear_axis(largest, unit, 20).ticks]

    assert labels(87, Unit.PERCENT) == ["0", "25", "50", "75", "100"]
    assert labels(1.4e6, Unit.PER_SECOND) == ["0", "500k", "1M", "1.5M"]
    assert labels(900 * 2**20, Unit.BYTES_PER_SECOND) == ["0", "256M", "512M", "768M", "1G"]
    assert labels(0.0, Unit.MILLISECONDS) == ["0", "0.25", "0.5", "0.75", "1"]


def test_log_axis_ends_at_decades() -> None:
    axis = log_axis(0.04, 230, 20)
    assert (axis.low, axis.high) == pytest.approx((0.01, 1000))
    heights = axis.position(np.array([0.0, 0.01, 1000.0, NAN]))
    assert heights[:3].tolist() == pytest.approx([0, 0, 1])
    assert math.isnan(heights[3])


def test_columns_stand_at_fixed_moments_while_time_goes_by() -> None:
    scale = scale_to(START, START + 300 * SECOND, 100, None)
    later = scale_to(START + 7 * SECOND, START + 307 * SECOND + 40_000_000, 100, scale)
    assert later.column_ns == scale.column_ns
    assert (later.start_ns - scale.start_ns) % scale.column_ns == 0
    assert later.column_of(START + 307 * SECOND) in (98, 99)


@given(
    st.lists(st.floats(0, 1e6) | st.just(NAN), min_size=1, max_size=80),
    st.integers(2, 120),
)
def test_envelope_keeps_every_point_and_invents_no_value(values: list[float], columns: int) -> None:
    array = np.array(values)
    times = _times(len(values))
    scale = scale_to(int(times[0]), int(times[-1]), columns, None)
    low, high = envelope(times, array, scale)
    for time_ns, value in zip(times.tolist(), values, strict=True):
        column = scale.column_of(time_ns)
        assert 0 <= column < columns
        if not math.isnan(value):
            assert low[column] <= value <= high[column]
    drawn = ~np.isnan(low)
    assert (drawn == ~np.isnan(high)).all()
    if drawn.any():
        assert low[drawn].min() >= np.nanmin(array) * (1 - 1e-9)
        assert high[drawn].max() <= np.nanmax(array) * (1 + 1e-9)


def test_missing_points_leave_a_gap() -> None:
    times = _times(9)
    scale = scale_to(int(times[0]), int(times[-1]), 90, None)
    low, _ = envelope(times, np.array([1, 1, 1, NAN, NAN, NAN, 1, 1, 1.0]), scale)
    gap = slice(scale.column_of(int(times[2])) + 1, scale.column_of(int(times[6])))
    assert np.isnan(low[gap]).all()
    assert not np.isnan(low[scale.column_of(int(times[0])) : gap.start - 1]).any()


def test_dots_become_braille_characters() -> None:
    dots = np.zeros((4, 4), dtype=np.bool_)
    dots[3, 0] = dots[0, 1] = dots[:, 2] = True
    assert "".join(chr(BLANK + bits) for bits in pack(dots)[0].tolist()) == "⡈⡇"


def test_curves_differ_without_colour_but_rises_are_whole() -> None:
    level = np.full(12, 0.5)
    drawn = [trace(level, level, 40, 0, pattern).any(axis=0).sum() for pattern in range(4)]
    assert drawn[0] == 12
    assert drawn[1] < drawn[0]
    assert len({trace(level, level, 40, 0, pattern).tobytes() for pattern in range(4)}) == 4
    rise = trace(np.zeros(2), np.ones(2), 40, 0, 2)
    assert rise.all()


def test_clock_labels_are_round_and_few() -> None:
    assert [label for _, label in clock_ticks(START, START + 95 * SECOND, 5)] == [
        "22:13:00", "22:13:30", "22:14:00", "22:14:30",
    ]  # fmt: skip
    assert [label for _, label in clock_ticks(START, START + 3 * 3600 * SECOND, 4)] == ["23:00", "00:00", "01:00"]
    assert clock_ticks(START, START, 5) == []


# the widget


async def _lines(
    values: Sequence[float], events: Sequence[Event] = (), size: tuple[int, int] = (60, 10), glyphs: Glyphs = UNICODE
) -> list[str]:
    chart = Chart("Latency", Unit.MILLISECONDS)
    async with OneWidget(chart, glyphs=glyphs).run_test(size=size) as pilot:
        _show(chart, values, events)
        await pilot.pause()
        return text_of(chart)


async def test_title_gives_unit_name_and_newest_value() -> None:
    lines = await _lines([1, 2, 3.456])
    assert lines[0].split() == ["Latency", "ms", "━━", "read", "3.46"]
    assert (await _lines([1, 2, NAN]))[0].split()[-1] == "-"


async def test_a_title_says_of_what_it_is_where_the_legend_leaves_room() -> None:
    for width, head in ((60, ["Latency", "of", "sda", "ms", "━━"]), (24, ["Latency", "ms", "━━"]), (18, ["Latency"])):
        chart = Chart("Latency", Unit.MILLISECONDS)
        chart.set_title("Latency", of="sda")
        async with OneWidget(chart).run_test(size=(width, 10)) as pilot:
            _show(chart, [1, 2, 3.456], ())
            await pilot.pause()
            assert text_of(chart)[0].split()[: len(head)] == head
            assert (text_of(chart)[0].split()[-1] == "3.46") is (width > 18)


async def test_axes_and_events_are_drawn_where_they_belong() -> None:
    events = [_event(60, "qd 8 -> 32"), _event(64, "sdc gone", EventKind.HOTPLUG)]
    lines = await _lines([3.9] + [1.2] * 120, events, size=(80, 10))
    assert lines[1].startswith("    4┤")
    assert lines[8].startswith("    0┤")
    bottom = lines[9]
    assert "◆─±" in bottom or "◆──±" in bottom
    assert "┬22:13:30" in bottom
    assert "22:14:00" not in bottom  # the events stand there
    column = bottom.index("±")
    assert "qd 8 -> 32" in lines[1]
    assert lines[2][column : column + 9] == "┊sdc gone"
    assert abs(column - (6 + 74 * 64 // 120)) <= 1


async def test_level_curve_stands_at_its_height() -> None:
    lines = await _lines([1.2] * 60, size=(60, 14))
    rows = [y for y, line in enumerate(lines[1:13]) if any("⠀" < char <= "⣿" for char in line)]
    assert rows == [2]  # 1.2 of 1.5: a fifth from the top of 12 rows


async def test_ascii_draws_with_marks() -> None:
    lines = await _lines([1, 5, 2, 8, 3] * 10, [_event(20, "note", EventKind.NOTE)], glyphs=ASCII)
    assert all(line.isascii() for line in lines)
    assert any(line.count("*") > 5 for line in lines[1:9])
    assert "N" in lines[9]


@pytest.mark.parametrize("size", [(20, 5), (24, 4), (12, 2), (5, 1), (1, 1), (200, 60)])
@pytest.mark.parametrize("values", [[], [NAN, NAN], [0.0], [1e-9, 1e12, NAN, math.inf, 3]])
async def test_any_size_and_figures_fill_exactly(size: tuple[int, int], values: list[float]) -> None:
    lines = await _lines(values, [_event(0, "日本 \x1b[31m")], size=size)
    assert [cell_len(line) for line in lines] == [size[0]] * size[1]
    assert "\x1b" not in "".join(lines)


async def test_says_that_it_waits() -> None:
    assert "waiting for data" in "".join(await _lines([]))


async def test_unchanged_figures_send_nothing() -> None:
    chart = Chart("Latency", Unit.MILLISECONDS)
    async with OneWidget(chart).run_test(size=(60, 10)) as pilot:
        _show(chart, [1, 2, 3] * 20)
        await pilot.pause()
        drawn_again(chart)
        _show(chart, [1, 2, 3] * 20)
        assert not drawn_again(chart)
        _show(chart, [1, 2, 3] * 19 + [1, 2, 3.4])
        assert drawn_again(chart)


async def test_the_time_axis_is_drawn_again_only_for_another_time_event_or_scale() -> None:
    chart, values = Chart("IOPS", Unit.PER_SECOND), [10.0] * 40
    async with OneWidget(chart).run_test(size=(66, 12)) as pilot:
        _show(chart, values)
        await pilot.pause()
        first = chart.draw_lines()[-1]
        _show(chart, [20.0] * 40)
        assert chart.draw_lines()[-1] is first
        _show(chart, values, [_event(20, "qd 8")])
        marked = chart.draw_lines()[-1].text
        assert [cell for cell, (old, new) in enumerate(zip(first.text, marked, strict=True)) if old != new]
        _show(chart, [10.0] * 400)
        assert chart.draw_lines()[-1].text not in {first.text, marked}
        _show(chart, values)
        assert chart.draw_lines()[-1].text == first.text
        chart.set_axis(AxisChoice.LOG)
        _show(chart, values)
        assert chart.draw_lines()[-1].text.strip().startswith("log")


@given(
    st.integers(1, 5).flatmap(
        lambda rows: st.integers(1, 9).flatmap(
            lambda cells: st.lists(
                st.lists(st.integers(0, 3), min_size=cells, max_size=cells), min_size=rows, max_size=rows
            )
        )
    )
)
def test_runs_of_one_owner_take_in_the_blanks_on_their_right(rows: list[list[int]]) -> None:
    owners = np.array(rows, np.uint16)
    codes = ord("a") + np.arange(owners.size, dtype=np.uint32).reshape(owners.shape) % 26
    found = owner_runs(codes, owners, joined=owners == 0)
    for number, runs in enumerate(found):
        assert "".join(text for text, _ in runs) == "".join(map(chr, codes[number]))
        drawn = [owner for text, owner in runs for _ in text]
        wanted = rows[number]
        for cell in range(1, len(wanted)):
            assert drawn[cell] == (wanted[cell] or drawn[cell - 1])
        assert drawn[0] == wanted[0]
        assert all(left[1] != right[1] for left, right in itertools.pairwise(runs))


@pytest.mark.parametrize(("mask", "first"), [([], 0), ([False], 1), ([True], 0), ([False, True, True], 1)])
def test_the_first_that_is_true_or_beyond_the_end(mask: list[bool], first: int) -> None:
    assert first_true(np.array(mask, np.bool_)) == first


async def test_clock_that_stepped_back_is_drawn_as_standstill() -> None:
    chart = Chart("Latency", Unit.MILLISECONDS)
    async with OneWidget(chart).run_test(size=(60, 10)) as pilot:
        times = _times(6)
        times[3:] -= 2 * SECOND
        chart.show(times, [ChartSeries("read", np.arange(6.0))])
        await pilot.pause()
        assert text_of(chart)[0].split()[-1] == "5.00"


async def test_span_makes_room_for_what_is_to_come() -> None:
    chart = Chart("Latency", Unit.MILLISECONDS)
    async with OneWidget(chart).run_test(size=(66, 10)) as pilot:
        chart.show(_times(5), [ChartSeries("read", np.ones(5))], span_ns=100 * SECOND)
        await pilot.pause()
        braille = [x for line in text_of(chart) for x, char in enumerate(line) if "⠀" < char <= "⣿"]
        assert min(braille) >= 60


async def test_cursor_gives_the_values_at_its_moment() -> None:
    chart = Chart("Latency", Unit.MILLISECONDS)
    app = Heard(chart)
    async with app.run_test(size=(60, 10)) as pilot:
        _show(chart, [1.0, 2.0, 3.0, 4.0])
        chart.focus()
        await pilot.press("left", "left")
        await pilot.pause()
        assert text_of(chart)[0].split() == ["Latency", "ms", "at", "22:13:02", "━━", "read", "3.00"]
        assert app.heard == [START + 3 * SECOND, START + 2 * SECOND]
        await pilot.press("shift+left", "left", "left", "left")
        assert chart.inspected_ns == START
        await pilot.press("escape")
        assert app.heard[-1] is None
        await pilot.click(chart, offset=(7, 5))
        assert chart.inspected_ns == START


async def test_cursor_is_put_away_when_its_moment_leaves() -> None:
    chart = Chart("Latency", Unit.MILLISECONDS)
    async with OneWidget(chart).run_test(size=(60, 10)):
        _show(chart, [1.0, 2.0])
        chart.inspect(START)
        chart.show(_times(4)[2:], [ChartSeries("read", np.ones(2))])
        assert chart.inspected_ns is None


@pytest.mark.parametrize(("size", "theme"), [((100, 24), "lunscope-dark"), ((40, 8), "lunscope-light")])
def test_looks_as_agreed(size: tuple[int, int], theme: str, snap_compare: Callable[..., bool]) -> None:
    chart = Chart("Latency", Unit.MILLISECONDS)
    turn = np.arange(240) / 12

    async def show(pilot: Pilot[None]) -> None:
        read = 1.5 + np.sin(turn)
        read[60:75] = NAN
        write = 3 + np.cos(turn * 1.3)
        peak = write + np.where(np.arange(240) % 50 == 20, 9.0, 0.5)
        curves = (("read", read), ("write", write), ("peak", peak))
        series = [ChartSeries(name, values, f"chart--{name}") for name, values in curves]
        chart.show(_times(240), series, [_event(120, "queue depth 32")])
        await pilot.pause()

    assert snap_compare(OneWidget(chart, theme=theme), terminal_size=size, run_before=show)
