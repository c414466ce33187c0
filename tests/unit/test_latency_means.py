"""Mean latency of each interval, from histograms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.latency.subjects import Direction
from collectors.latency.summary import means_ns
from collectors.latency.ticks import LatencyTicks
from engine.replacing import replace
from tests.unit.latency_ticks import SERIES, tick, track
from tui.screens.latency.panels import latency_stack

NAMES = ("read", "write")


@pytest.mark.slow
@given(st.lists(st.lists(st.tuples(st.just(0), st.integers(0, 1), st.integers(1, 10**9)), max_size=20), min_size=1))
def test_a_mean_is_that_of_its_interval_and_series(intervals: list[list[tuple[int, int, int]]]) -> None:
    ticks = track([tick(float(number), ios) for number, ios in enumerate(intervals)]).view()
    for wanted in (NAMES, ("read",), ("write",)):
        means = means_ns(ticks, wanted)
        for mean, ios in zip(means.tolist(), intervals, strict=True):
            values = [latency for _, series, latency in ios if SERIES[series] in wanted]
            if values:
                assert mean == pytest.approx(sum(values) / len(values), rel=0.02, abs=1)
            else:
                assert math.isnan(mean), "an interval without I/O is a gap"


def test_a_load_has_no_parts() -> None:
    stack = latency_stack(track([tick(0.0, [(0, 0, 2_000_000)])]).view(), Direction.BOTH)
    assert stack.whole.values[0] == pytest.approx(2.0, rel=0.02)
    assert np.isnan(stack.lower.values).all()
    assert np.isnan(stack.upper.values).all()


def test_queue_and_service_of_disks_add_up() -> None:
    whole = np.array([np.nan])
    stack = latency_stack(_split_ticks(queue_ns=3_000_000, service_ns=1_000_000), Direction.READ)
    assert np.array_equal(stack.whole.values, whole, equal_nan=True), "it has no histogram of its own"
    assert stack.totals[0] == pytest.approx(4.0, rel=0.02)
    assert stack.lower.values[0] == pytest.approx(1.0, rel=0.02)
    assert np.isnan(latency_stack(_split_ticks(queue_ns=3, service_ns=1), Direction.WRITE).totals).all()


def _split_ticks(*, queue_ns: int, service_ns: int) -> LatencyTicks:
    plain = track([tick(0.0, [(0, 0, queue_ns), (0, 1, service_ns)])]).view()
    return replace(plain, source="trace", series=("queue_read", "service_read"))
