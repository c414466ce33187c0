"""Cells of a subject: those of all its rows added, one for each series and bucket."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.latency.ticks import LatencyTicks
from engine.replacing import replace
from tests.unit.latency_ticks import SCALE, bucket_of, tick, track

IOS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(1, 5000)), max_size=60)


def _cells(ticks: LatencyTicks, interval: int) -> list[tuple[tuple[int, int], int]]:
    kept = slice(int(ticks.first_cell[interval]), int(ticks.first_cell[interval + 1]))
    pairs = zip(ticks.series_index[kept].tolist(), ticks.bucket[kept].tolist(), strict=True)
    return list(zip(pairs, ticks.count[kept].tolist(), strict=True))


@pytest.mark.slow
@given(st.lists(IOS, min_size=1, max_size=4))
def test_rows_of_a_subject_are_added(intervals: list[list[tuple[int, int, int]]]) -> None:
    ticks = track([tick(float(number), ios) for number, ios in enumerate(intervals)]).view()
    for number, ios in enumerate(intervals):
        wanted = Counter((series, bucket_of(SCALE, latency_ns)) for _, series, latency_ns in ios)
        assert _cells(ticks, number) == sorted(wanted.items())


def test_counts_that_a_float_cannot_hold_are_added_exactly() -> None:
    made = tick(0.0, [(0, 0, 1000), (1, 0, 1000)])
    counts = np.array([1 << 60, 1], np.uint64)
    ticks = track([replace(made, histograms=replace(made.histograms, count=counts))]).view()
    assert ticks.count.tolist() == [(1 << 60) + 1]


def test_cells_of_series_that_a_damaged_recording_has_not_are_left_out() -> None:
    made = tick(0.0, [(0, 0, 1000), (0, 1, 1000)])
    series = np.array([0, 200], np.uint8)
    ticks = track([replace(made, histograms=replace(made.histograms, series_index=series))]).view()
    assert ticks.series_index.tolist() == [0]
