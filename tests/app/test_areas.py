"""Stacked areas: their sums, gaps, axis and cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot

from collectors.field import Thresholds, Unit
from tests.app.shows import OneWidget, text_of
from tui.kept import AxisChoice
from tui.text.glyphs import ASCII, UNICODE, Glyphs
from tui.widgets.chart.areas import EIGHTHS, EMPTY, LOWER, UPPER, area_columns, fill_areas
from tui.widgets.chart.axes import linear_axis, scale_to
from tui.widgets.chart.model import ChartSeries, Stack, is_logarithmic
from tui.widgets.chart.widget import Chart

NAN = math.nan
SECOND = 1_000_000_000
START = 1_699_999_980 * SECOND
FIGURES = st.floats(0, 1e6) | st.just(NAN)


def _times(count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return START + np.arange(count, dtype=np.int64) * SECOND


def _stack(await_ms: Sequence[float], service: Sequence[float], queue: Sequence[float]) -> Stack:
    whole, lower, upper = (np.array(values, np.float64) for values in (await_ms, service, queue))
    return Stack(
        ChartSeries("", whole, "chart--total", Thresholds(20, 50)),
        ChartSeries("S", lower, "chart--service"),
        ChartSeries("Q", upper, "chart--queue"),
    )


@pytest.mark.slow
@given(st.lists(st.tuples(FIGURES, FIGURES, FIGURES), min_size=1, max_size=60), st.integers(2, 90))
def test_a_column_shows_the_largest_interval_that_ends_in_it(
    figures: list[tuple[float, float, float]], columns: int
) -> None:
    whole, lower, upper = (np.array(values) for values in zip(*figures, strict=True))
    times = _times(len(figures))
    scale = scale_to(int(times[0]), int(times[-1]), columns, None)
    areas = area_columns(times, whole, lower, upper, scale)
    totals = np.where(np.isnan(lower + upper), whole, lower + upper)
    for column in range(columns):
        ending = [n for n, time_ns in enumerate(times.tolist()) if scale.column_of(time_ns) == column]
        known = [n for n in ending if not math.isnan(totals[n])]
        if known:
            assert areas.whole[column] == max(totals[n] for n in known)
            parts = [n for n in known if totals[n] == areas.whole[column]]
            shown = areas.lower[column]
            assert any(shown == lower[n] or (math.isnan(shown) and math.isnan(lower[n] + upper[n])) for n in parts)
        elif ending:
            assert math.isnan(areas.whole[column])


def test_an_interval_fills_the_columns_since_the_one_before() -> None:
    times = _times(4)
    scale = scale_to(int(times[0]), int(times[-1]), 40, None)
    missing = np.full(4, NAN)
    areas = area_columns(times, np.array([1, 2, NAN, 4.0]), missing, missing, scale)
    first, second, third, last = (scale.column_of(time_ns) for time_ns in times.tolist())
    assert areas.whole[first] == 1
    assert (areas.whole[first + 1 : second + 1] == 2).all()
    assert np.isnan(areas.whole[second + 1 : third + 1]).all(), "a missing figure is a gap"
    assert (areas.whole[third + 1 : last + 1] == 4).all()
    assert np.isnan(areas.whole[last + 1 :]).all()


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_heights_add_up(glyphs: Glyphs) -> None:
    """Eighths of cells that are filled: the whole, and the lower part of it."""
    times = _times(3)
    scale = scale_to(int(times[0]), int(times[-1]), 3, None)
    service, queue = np.array([2.0, 1.0, 4.0]), np.array([2.0, 3.0, 0.0])
    areas = area_columns(times, service + queue, service, queue, scale)
    axis = linear_axis(8.0, Unit.MILLISECONDS, 8)
    codes, owners = fill_areas(areas, axis, 8, glyphs, shades=False)
    for column in range(3):
        shown = int(np.flatnonzero(~np.isnan(areas.whole))[column])
        assert (owners[:, shown] != EMPTY).sum() == 4
        assert (owners[:, shown] == LOWER).sum() == service[column]
        assert (owners[:, shown] == UPPER).sum() == queue[column]
    assert chr(codes[-1, int(np.flatnonzero(~np.isnan(areas.whole))[0])]) == glyphs.areas[0]


@pytest.mark.parametrize(("glyphs", "mark"), [(UNICODE, "▁"), (ASCII, "_")])
def test_zero_differs_from_a_gap(glyphs: Glyphs, mark: str) -> None:
    times = _times(3)
    scale = scale_to(int(times[0]), int(times[-1]), 3, None)
    zero = np.array([0.0, NAN, 0.0])
    codes, owners = fill_areas(
        area_columns(times, zero, zero, zero, scale), linear_axis(8.0, Unit.MILLISECONDS, 4), 4, glyphs, shades=False
    )
    columns = [scale.column_of(time_ns) for time_ns in times.tolist()]
    assert chr(codes[-1, columns[0]]) == mark
    assert (owners[:, columns[1]] == EMPTY).all()
    assert len(glyphs.area_levels) in {0, EIGHTHS + 1}


def test_a_peak_chooses_the_logarithmic_axis_and_noise_does_not_alternate() -> None:
    level, peak = np.full(100, 2.0), np.append(np.full(99, 2.0), 70.0)
    assert not is_logarithmic(AxisChoice.AUTO, [level], was_log=False)
    assert is_logarithmic(AxisChoice.AUTO, [peak], was_log=False)
    assert not is_logarithmic(AxisChoice.LINEAR, [peak], was_log=True)
    assert is_logarithmic(AxisChoice.LOG, [level], was_log=False)
    between = np.append(np.full(99, 2.0), 36.0)
    assert not is_logarithmic(AxisChoice.AUTO, [between], was_log=False)
    assert is_logarithmic(AxisChoice.AUTO, [between], was_log=True)
    assert is_logarithmic(AxisChoice.AUTO, [level, np.full(100, 90.0)], was_log=False), "one curve flattens another"
    assert not is_logarithmic(AxisChoice.AUTO, [np.zeros(5)], was_log=False)


async def _lines(stack: Stack, glyphs: Glyphs = UNICODE, size: tuple[int, int] = (60, 10)) -> list[str]:
    chart = Chart("Await", Unit.MILLISECONDS, axis=AxisChoice.AUTO)
    async with OneWidget(chart, glyphs=glyphs).run_test(size=size) as pilot:
        chart.show(_times(len(stack.whole.values)), (), stack=stack)
        await pilot.pause()
        return text_of(chart)


async def test_title_has_the_sum_its_parts_and_unit() -> None:
    lines = await _lines(_stack([4.0] * 30, [1.5] * 30, [2.5] * 30))
    assert lines[0].split() == ["Await", "ms", "4.00", "▒", "Q", "2.50", "█", "S", "1.50"]
    assert lines[1].startswith("    4┤")
    assert "log" not in lines[-1]


async def test_the_axis_says_that_it_is_logarithmic() -> None:
    lines = await _lines(_stack([1.0] * 59 + [60.0], [1.0] * 60, [0.0] * 59 + [59.0]))
    assert lines[-1].startswith("  log└")
    assert "▲60.0" in lines[0], "at the hot threshold"


async def test_a_whole_without_parts_is_drawn_as_such() -> None:
    lines = await _lines(_stack([4.0] * 30, [NAN] * 30, [NAN] * 30))
    assert lines[0].split() == ["Await", "ms", "░", "4.00"]
    assert "░" in lines[-2]
    assert "█" not in "".join(lines)


async def test_ascii_fills_with_letters() -> None:
    lines = await _lines(_stack([4.0] * 30, [2.0] * 30, [2.0] * 30), ASCII)
    assert all(line.isascii() for line in lines)
    assert "####" in lines[-2]
    assert "qqqq" in lines[3]


@pytest.mark.parametrize("size", [(20, 5), (24, 4), (12, 2), (5, 1), (1, 1), (200, 60)])
@pytest.mark.parametrize("values", [[NAN, NAN], [0.0], [1e-9, 1e12, NAN, math.inf, 3]])
async def test_any_size_and_figures_fill_exactly(size: tuple[int, int], values: list[float]) -> None:
    lines = await _lines(_stack(values, values, values), size=size)
    assert [len(line) for line in lines] == [size[0]] * size[1]


@pytest.mark.parametrize("stacked", [True, False])
async def test_blanks_have_the_background_of_the_chart_beside_cells_with_one_of_their_own(*, stacked: bool) -> None:
    """Beside tops of areas and the inspected time; a blank with their background would look like a bar."""
    times, service = _times(240), np.full(240, 1.0)
    whole = service + np.where(np.arange(240) % 40 < 20, 2.05, 0.05)
    chart = Chart("Await of sda", Unit.MILLISECONDS)
    async with OneWidget(chart).run_test(size=(100, 16)) as pilot:
        if stacked:
            chart.show(times, (), stack=_stack(whole.tolist(), service.tolist(), (whole - service).tolist()))
        else:
            chart.show(times, [ChartSeries("await", whole, "chart--total")])
        chart.inspect(int(times[100]))
        await pilot.pause()
        cells = [
            [(char, style) for text, style, _ in chart.render_line(y) for char in text]
            for y in range(1, chart.size.height - 1)
        ]
        plain, inspect = (chart.get_component_rich_style(f"chart--{part}").bgcolor for part in ("empty", "inspect"))
    grounds = [{style and style.bgcolor for char, style in line if char == " "} for line in cells]
    assert any(style and style.bgcolor == inspect for line in cells for _, style in line)
    assert set().union(*grounds) == {plain}


@pytest.mark.parametrize(
    ("theme", "glyphs"), [("lunscope-dark", UNICODE), ("lunscope-ansi", UNICODE), ("lunscope-ansi", ASCII)]
)
def test_looks_as_agreed(theme: str, glyphs: Glyphs, snap_compare: Callable[..., bool]) -> None:
    chart = Chart("Await of sda", Unit.MILLISECONDS)

    async def show(pilot: Pilot[None]) -> None:
        turn = np.arange(240) / 12
        service, queue = 1.2 + 0.3 * np.sin(turn), np.maximum(0, 2 * np.sin(turn / 3))
        whole = service + queue
        service[100:130] = NAN
        whole[110:120] = NAN
        chart.show(_times(240), (), stack=_stack(whole.tolist(), service.tolist(), queue.tolist()))
        await pilot.pause()

    assert snap_compare(OneWidget(chart, theme=theme, glyphs=glyphs), terminal_size=(100, 16), run_before=show)
