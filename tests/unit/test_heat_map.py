"""Heat maps against counting by hand: no I/O is lost, invented or put where it does not belong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from collectors.latency.heat_map import LatencyRange, heat_columns, heat_rows
from collectors.latency.subjects import Direction, LatencySubject, parts_of, series_of
from collectors.latency.summary import cells_of, peaks_ns, summarize
from collectors.latency.ticks import MOST_TICKS, LatencyTicks
from collectors.model import HistogramScale, Part, Rows
from tests.unit.latency_ticks import ROWS, SCALE, SECOND_NS, START_NS, tick, ticks_of, track

COARSE = HistogramScale(unit_ns=64, sub_bits=4)
latencies = st.lists(st.lists(st.integers(1, 2**40), max_size=30), min_size=1, max_size=12)


def _columns_by_second(ticks: LatencyTicks) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return (ticks.times_ns - START_NS) // SECOND_NS


def _peaks(ticks: LatencyTicks, *series: str) -> NDArray[np.float64]:
    return peaks_ns(ticks, series, cells_of(ticks, series))


# rows


@pytest.mark.parametrize("scale", [SCALE, COARSE])
@pytest.mark.parametrize(
    ("low", "high", "rows"), [(1e4, 1e8, 30), (1e3, 1e10, 200), (95_000, 105_000, 40), (1, 50, 20)]
)
def test_rows_join_without_gaps_and_stand_near_where_the_axis_says(
    scale: HistogramScale, low: float, high: float, rows: int
) -> None:
    made = heat_rows(scale, LatencyRange(low, high), rows)
    assert (made.after > made.first).all()
    assert (np.diff(made.first) >= 0).all()
    new = np.flatnonzero(np.diff(made.first)) + 1
    assert (made.first[new] <= made.after[new - 1]).all()
    width = np.maximum(scale.unit_ns, made.low_ns / (1 << scale.sub_bits))
    edges = low * (high / low) ** (np.arange(rows) / rows)
    assert (made.low_ns <= edges + width).all()
    assert (made.high_ns >= edges - width).all()


def test_a_latency_finds_its_row() -> None:
    rows = heat_rows(SCALE, LatencyRange(1e4, 1e6), 20)
    found = rows.row_of(np.array([rows.low_ns[7], rows.high_ns[7] - 1, 1.0, 1e9, np.nan]))
    assert found.tolist() == [7, 7, -1, 20, -1]


# columns


@settings(max_examples=60)
@given(seconds=latencies, rows=st.integers(1, 40), per_column=st.integers(1, 4))
def test_every_io_is_counted_once(seconds: list[list[int]], rows: int, per_column: int) -> None:
    ticks = ticks_of(seconds)
    span = heat_rows(SCALE, LatencyRange(1e5, 1e8), rows)
    columns = heat_columns(ticks, ("read",), _columns_by_second(ticks) // per_column, span)
    assert len(columns) == -(-len(seconds) // per_column)
    for column in range(len(columns)):
        own = [latency for second in seconds[column * per_column : (column + 1) * per_column] for latency in second]
        ios = np.array(own, np.int64)
        assert columns.ios[column] == len(own)
        assert columns.below[column] == (ios < span.low_ns[0]).sum()
        assert columns.above[column] == (ios >= span.high_ns[-1]).sum()
        for row in range(rows):
            inside = (ios >= span.low_ns[row]) & (ios < span.high_ns[row])
            assert columns.counts[column, row] == inside.sum()
            assert columns.at_most[column, row] == (ios < span.high_ns[row]).sum()
        if own:
            assert columns.peaks_ns[column] == max(own)
        else:
            assert np.isnan(columns.peaks_ns[column])


def test_columns_know_their_time_and_percentiles() -> None:
    ticks = ticks_of([[100_000] * 150 + [9_000_000], [200_000] * 50, [], [1_000_000]])
    columns = heat_columns(ticks, ("read",), np.array([0, 0, 5, 5]), heat_rows(SCALE, LatencyRange(1e4, 1e8), 10))
    assert columns.ends_ns.tolist() == [START_NS + SECOND_NS, START_NS + 3 * SECOND_NS]
    assert columns.starts_ns.tolist() == [START_NS - SECOND_NS, START_NS + SECOND_NS]
    assert columns.seconds.tolist() == [2, 2]
    assert columns.percentiles_ns[:, 0] == pytest.approx([100_000, 200_000], rel=0.008)
    assert columns.percentiles_ns[0, 1] == pytest.approx(1_000_000, rel=0.008)
    assert np.isnan(columns.percentiles_ns[1, 1])


def test_directions_and_parts_choose_series() -> None:
    trace = ("queue_read", "queue_write", "service_read", "service_write")
    assert parts_of(trace) == (Part.QUEUE, Part.SERVICE)
    assert parts_of(("read", "write")) == (Part.TOTAL,)
    assert series_of(trace, Part.SERVICE, Direction.BOTH) == ("service_read", "service_write")
    assert series_of(trace, Part.QUEUE, Direction.WRITE) == ("queue_write",)
    assert series_of(("read", "write"), Part.TOTAL, Direction.READ) == ("read",)
    assert series_of(trace, Part.TOTAL, Direction.BOTH) == ()


# tracks


def test_a_track_keeps_its_own_rows_and_marks_their_absence_as_a_gap() -> None:
    only_a = Rows(("a",), ("vda",))
    made = track(
        [
            tick(0, [(0, 0, 5_000), (1, 0, 7_000)]),
            tick(1, [(0, 0, 5_000)], rows=only_a),
            tick(2, []),
            tick(3, [(1, 1, 9_000)]),
        ],
        LatencySubject("b", "load", frozenset({"b"})),
    ).view()
    assert ((made.times_ns - START_NS) // SECOND_NS).tolist() == [0, 2, 3]
    assert np.diff(made.first_cell).tolist() == [1, 0, 1]
    assert _peaks(made, "read", "write").tolist() == pytest.approx([7_000, np.nan, 9_000], nan_ok=True)


def test_a_peak_over_more_than_asked_for_is_not_taken() -> None:
    ticks = track([tick(0, [(0, 0, 1_000_003), (0, 1, 5_000_000)])]).view()
    assert _peaks(ticks, "read").tolist() == [1_000_003]
    without = track([tick(0, [(0, 0, 1_000_003)], exact=False)]).view()
    assert _peaks(without, "read") == pytest.approx([1_000_003], rel=0.008)


@pytest.mark.slow
def test_a_view_stays_as_it_was_while_the_track_grows_and_forgets() -> None:
    made = track([tick(at, [(0, 0, 1_000 + at)]) for at in range(10)])
    view = made.view()
    before = view.bucket.copy()
    for at in range(10, 2 * MOST_TICKS):
        made.add(tick(at, [(0, 0, 1_000 + at)]))
    assert (view.bucket == before).all()
    later = made.view()
    assert MOST_TICKS <= len(later) <= MOST_TICKS * 5 // 4
    assert later.times_ns[-1] == START_NS + (2 * MOST_TICKS - 1) * SECOND_NS
    assert (np.diff(later.times_ns) == SECOND_NS).all()
    assert len(later.bucket) == later.first_cell[-1] == len(later)
    assert later.peaks_ns[0, 0] == 1_000 + (later.times_ns[0] - START_NS) // SECOND_NS


def test_a_clock_that_steps_back_stands_still() -> None:
    made = track([tick(5, [(0, 0, 1_000)]), tick(2, [(0, 0, 2_000)])]).view()
    assert (made.times_ns == START_NS + 5 * SECOND_NS).all()


def test_a_stretch_of_time_is_cut_at_interval_ends() -> None:
    ticks = ticks_of([[1_000], [2_000, 2_100], [3_000], [4_000]])
    cut = ticks.between(START_NS, START_NS + 2 * SECOND_NS)
    assert len(cut) == 2
    assert cut.count.sum() == 3
    assert cut.first_cell[0] == 0
    assert len(ticks.between(START_NS + 99 * SECOND_NS, START_NS + 100 * SECOND_NS)) == 0


def test_cells_of_rows_that_are_not_there_are_left_out() -> None:
    odd = tick(0, [(0, 0, 1_000), (1, 0, 2_000)])
    odd.histograms.row[1] = 77
    assert track([odd]).view().count.sum() == 1


# summaries


@settings(max_examples=40)
@given(seconds=st.lists(st.lists(st.integers(1, 2**34), max_size=60), min_size=1, max_size=8))
def test_a_summary_is_that_of_all_ios_together(seconds: list[list[int]]) -> None:
    summary = summarize(ticks_of(seconds), ("read",))
    every = sorted(latency for second in seconds for latency in second)
    assert summary.ios == len(every)
    peaks = [max(second) for second in seconds if second]
    assert summary.peaks == len(peaks)
    if every:
        assert summary.max_ns == every[-1]
        assert summary.p50_ns == pytest.approx(every[(len(every) + 1) // 2 - 1], rel=0.008, abs=0.5)
        assert summary.average_peak_ns == pytest.approx(np.mean(peaks))
    else:
        assert np.isnan(summary.max_ns)
        assert np.isnan(summary.average_peak_ns)
    assert np.isnan(summary.p99_ns) == (len(every) < 100)


def test_the_average_peak_is_by_second_however_short_the_intervals() -> None:
    parts = [tick(1 + at / 10, [(0, 0, 1_000 * (at + 1))], span_s=0.1) for at in range(20)]
    summary = summarize(track(parts).view(), ("read",))
    assert summary.peaks == 2
    assert summary.average_peak_ns == (10_000 + 20_000) / 2


def test_nothing_at_all_is_no_error() -> None:
    empty = ticks_of([[1_000]]).between(0, 1)
    columns = heat_columns(empty, ("read",), np.zeros(0, np.int64), heat_rows(SCALE, LatencyRange(1e4, 1e8), 5))
    assert len(columns) == 0
    assert columns.counts.shape == (0, 5)
    assert summarize(empty, ("read",)).ios == 0
    assert ROWS.positions == {"a": 0, "b": 1}
