"""Axes of plots: their round values, and labels that do not collide."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.field import Unit
from tui.widgets.chart.axes import tick_label
from tui.widgets.plots import AXIS_CELLS, PlotAxis, Rounding, labelled_rows, labels_below, line_below


@pytest.mark.parametrize(
    ("axis", "parts", "values"),
    [
        (PlotAxis(0, 2660), 5, [0, 1000, 2000]),
        (PlotAxis(0, 2660), 6, [0, 500, 1000, 1500, 2000, 2500]),
        (PlotAxis(0.38, 23, is_log=True), 7, [0.5, 1, 2, 5, 10, 20]),
        (PlotAxis(0.38, 23, is_log=True), 3, [1, 3, 10]),
        (PlotAxis(0.001, 1000, is_log=True), 4, [0.001, 0.1, 10, 1000]),
        (PlotAxis(10, 14, is_log=True), 4, [10, 11, 12, 13, 14]),
        (PlotAxis(0, 1_250_000, rounding=Rounding.BINARY), 5, [0, 1 << 18, 1 << 19, 3 << 18, 1 << 20]),
        (PlotAxis(0, 0.4, rounding=Rounding.BINARY), 4, [0, 0.1, 0.2, 0.3, 0.4]),
        (PlotAxis(0, 100, rounding=Rounding.CLOCK), 4, [0, 30, 60, 90]),
        (PlotAxis(0, 2_000_000, rounding=Rounding.CLOCK), 4, [0, 604_800, 1_209_600, 1_814_400]),
    ],
)
def test_values_are_round(axis: PlotAxis, parts: int, values: list[float]) -> None:
    assert axis.round_values(parts) == pytest.approx(values)


RANGES = st.tuples(st.floats(1e-4, 1e6), st.floats(1.001, 1e6)).map(lambda pair: (pair[0], pair[0] * pair[1]))


@given(RANGES, st.booleans(), st.integers(2, 30))
def test_values_of_any_range_are_in_it_and_few(ends: tuple[float, float], is_log: bool, parts: int) -> None:
    axis = PlotAxis(*ends, is_log=is_log)
    values = axis.round_values(parts)
    assert values == sorted(set(values))
    assert len(values) <= parts + 1
    assert all(-1e-6 <= float(axis.at(value)) <= 1 + 1e-6 for value in values)


@given(RANGES, st.booleans(), st.integers(1, 60))
def test_labels_of_rows_are_apart_and_where_their_values_are(
    ends: tuple[float, float],
    is_log: bool,
    rows: int,
) -> None:
    axis = PlotAxis(*ends, is_log=is_log)
    labels = labelled_rows(axis, rows, lambda value: tick_label(value, Unit.MILLISECONDS))
    assert all(0 <= row < rows for row in labels)
    assert all(abs(one - other) > 1 for one in labels for other in labels if one != other)
    assert all(len(label) <= AXIS_CELLS for label in labels.values())


def test_labels_below_are_in_the_middle_of_their_positions_and_leave_out_what_collides() -> None:
    line = labels_below([(0.0, "0"), (0.5, "50"), (0.52, "52"), (1.0, "100")], 41)
    assert len(line) == AXIS_CELLS + 1 + 41
    assert line[AXIS_CELLS + 1 :] == "0" + " " * 18 + "50" + " " * 17 + "100"


def test_values_below_a_logarithm_are_at_its_low_end() -> None:
    axis = PlotAxis(1, 100, is_log=True)
    assert float(axis.at(0.0)) == 0
    assert float(axis.at(10.0)) == pytest.approx(0.5)
    assert math.isnan(float(axis.at(math.nan)))


def test_rates_are_labelled_below() -> None:
    line = line_below(PlotAxis(0, 22_900), 90, lambda value: tick_label(value, Unit.PER_SECOND))
    assert line.split() == ["0", "5k", "10k", "15k", "20k"]
