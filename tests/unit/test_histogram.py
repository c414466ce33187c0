from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.results.histogram import bucket_of, merge, middles_ns, percentile_ns

LATENCIES = st.integers(0, 2**40)


@given(LATENCIES)
def test_the_middle_of_a_bucket_is_within_its_share_of_every_latency_in_it(latency_ns: int) -> None:
    middle_ns = middles_ns(np.array([bucket_of(latency_ns)]))[0]
    assert abs(middle_ns - latency_ns) <= latency_ns / 128


@given(LATENCIES, LATENCIES)
def test_buckets_keep_the_order(one: int, other: int) -> None:
    if one <= other:
        assert bucket_of(one) <= bucket_of(other)


def test_the_scale_is_the_documented_one() -> None:
    # collectors.model.HistogramScale: one bucket per unit below 2^6, then ((octave + 1) << 6) + mantissa
    assert [bucket_of(value) for value in (0, 63, 64, 127, 128, 129, 255, 256, 260)] == [
        *(0, 63, 64, 127),
        *((2 << 6) + 0, (2 << 6) + 0, (2 << 6) + 63, (3 << 6) + 0, (3 << 6) + 1),
    ]


@given(st.lists(st.integers(1, 10**10), min_size=1, max_size=300), st.sampled_from([50.0, 90.0, 99.0]))
def test_a_percentile_is_the_latency_at_its_rank(latencies: list[int], percent: float) -> None:
    buckets, counts = merge(np.array([bucket_of(value) for value in latencies]), np.ones(len(latencies), np.uint64))
    found = percentile_ns(buckets, counts, percent)
    rank = -(-len(latencies) * int(percent) // 100)
    if len(latencies) * (100 - percent) < 100:
        assert found is None
    else:
        exact = sorted(latencies)[rank - 1]
        assert found is not None
        assert abs(found - exact) <= exact / 64


def test_merging_adds_counts_beyond_what_a_float_holds() -> None:
    buckets, counts = merge(np.array([7, 7, 3]), np.array([2**60, 1, 5], np.uint64))
    assert buckets.tolist() == [3, 7]
    assert counts.tolist() == [5, 2**60 + 1]
