"""Load classes and conditional throughput, against the pseudocode of RFC 9971 with its own figures worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import UsageError
from engine.rate_search.bounds import LoadClass, classify, is_out_of_time
from engine.rate_search.goal import Phase, RateGoal, parse_goal
from engine.rate_search.pooled import Pooled
from engine.rate_search.trial import Arrivals, RateTrial, excess_share
from engine.results.histogram import bucket_of
from engine.results.measured import Measured
from engine.sweep.limit import Limit

P99 = Limit.parse("p99<=5ms")
PHASE = Phase(1.0, 21.0, 1)


def _trials(good: int, bad: int, duration_s: float = 1.0) -> list[RateTrial]:
    shares = [0.002] * good + [0.015] * bad
    return [RateTrial(1000.0, duration_s, 1000.0, ios=1000, excess={P99.text: share}) for share in shares]


@pytest.mark.parametrize(
    ("good", "bad", "found"),
    [
        (0, 0, LoadClass.UNDECIDED),
        (10, 0, LoadClass.UNDECIDED),
        (11, 0, LoadClass.LOWER),
        (11, 10, LoadClass.LOWER),
        (10, 10, LoadClass.UNDECIDED),
        (0, 10, LoadClass.UNDECIDED),
        (0, 11, LoadClass.UPPER),
        (10, 11, LoadClass.UPPER),
    ],
)
def test_class_is_what_no_further_trial_can_change(good: int, bad: int, found: LoadClass) -> None:
    assert classify(_trials(good, bad), P99, PHASE, 0.5) is found


def test_short_trials_that_are_bad_count_only_beyond_short_ones_that_are_good() -> None:
    balanced = [*_trials(11, 0), *_trials(4, 4, 0.5)]
    assert classify(balanced, P99, PHASE, 0.5) is LoadClass.LOWER
    assert classify([*_trials(10, 0), *_trials(20, 0, 0.5)], P99, PHASE, 0.5) is LoadClass.UNDECIDED
    assert classify(_trials(0, 22, 0.5), P99, PHASE, 0.5) is LoadClass.UPPER


def test_exceed_ratio_of_zero_takes_no_bad_trial() -> None:
    assert classify(_trials(30, 1), P99, PHASE, 0.0) is LoadClass.UPPER
    assert classify(_trials(21, 0), P99, PHASE, 0.0) is LoadClass.LOWER


def _slow_trials(shares: list[float], ios: int, rate: float = 20.0) -> list[RateTrial]:
    return [RateTrial(rate, ios / rate, rate, ios=ios, excess={P99.text: share}) for share in shares]


def test_few_ios_are_pooled_until_ten_lie_beyond_the_percentile() -> None:
    """2 % of the I/Os are slow: most trials of 20 I/Os have none of them, and yet p99 is not kept."""
    shares = [0.0, 0.0, 0.05, 0.0, 0.05] * 10
    assert classify(_slow_trials(shares[:49], 20), P99, PHASE, 0.5) is LoadClass.UNDECIDED
    assert classify(_slow_trials(shares + shares, 20), P99, PHASE, 0.5) is LoadClass.UPPER
    assert classify(_slow_trials([0.0] * 49, 20), P99, PHASE, 0.5) is LoadClass.UNDECIDED
    assert classify(_slow_trials([0.0] * 50, 20), P99, PHASE, 0.5) is LoadClass.LOWER


def test_rate_is_not_kept_where_most_trials_keep_it_and_all_ios_together_do_not() -> None:
    few = [RateTrial(1000.0, 1.0, 1000.0, ios=1000, excess={P99.text: share}) for share in (0.0, 0.0, 0.0, 0.13, 0.13)]
    assert classify(few, P99, PHASE, 0.5) is not LoadClass.LOWER
    assert classify(few * 9, P99, PHASE, 0.5) is LoadClass.UPPER


def test_one_stall_takes_time_before_a_rate_is_refused() -> None:
    stall = RateTrial(1000.0, 1.0, 1000.0, ios=1000, excess={P99.text: 0.3})
    assert classify([stall, *_trials(20, 0)], P99, PHASE, 0.5) is LoadClass.UNDECIDED
    assert classify([stall, *_trials(41, 0)], P99, PHASE, 0.5) is LoadClass.LOWER
    assert classify([stall, *_trials(41, 0), stall], P99, PHASE, 0.5) is LoadClass.UPPER


def test_too_few_ios_in_the_longest_time_stay_undecided() -> None:
    trials = _slow_trials([0.0] * 30, 25, rate=5.0)
    assert sum(trial.duration_s for trial in trials) == 150
    assert classify(trials, P99, PHASE, 0.5) is LoadClass.UNDECIDED
    assert is_out_of_time(trials, P99, PHASE)
    assert not is_out_of_time(trials[:20], P99, PHASE)


def test_mean_is_that_of_all_ios_not_the_vote_of_trials() -> None:
    limit = Limit.parse("mean<=10ms")
    trials = [
        RateTrial(100.0, 1.0, 100.0, ios=100, latencies_ns={"mean": mean_ms * 1e6}, excess={limit.text: mean_ms > 10})
        for mean_ms in (8, 8, 8, 20, 20)
    ]
    assert Pooled.of(trials, limit).mean_ns == pytest.approx(12.8e6)
    assert classify(trials * 9, limit, PHASE, 0.5) is LoadClass.UPPER
    assert classify(trials[:3] * 7, limit, PHASE, 0.5) is LoadClass.LOWER


def _measured(latencies_ns: list[int]) -> Measured:
    buckets, counts = np.unique([bucket_of(each) for each in latencies_ns], return_counts=True)
    return Measured(
        len(latencies_ns),
        0,
        0,
        sum(latencies_ns),
        min(latencies_ns),
        max(latencies_ns),
        0,
        0,
        buckets.astype(np.uint16),
        counts.astype(np.uint64),
    )


def test_skipped_failed_and_waiting_ios_exceed_every_limit() -> None:
    total = _measured([1_000_000] * 990 + [9_000_000] * 10)
    assert excess_share(P99, total, Arrivals(1000.0, 1.0)) == pytest.approx(0.01)
    assert excess_share(P99, total, Arrivals(1000.0, 1.0, skipped=90, errors=10)) == pytest.approx(110 / 1100)
    # Of 2000 due, 1000 are not served: 10 may wait within the limit, 134 may be chance.
    late = excess_share(P99, total, Arrivals(2000.0, 1.0))
    assert late == pytest.approx((10 + 1000 - 10 - 3 * 2000**0.5) / (2000 - 10 - 3 * 2000**0.5))


def test_rate_that_is_not_carried_keeps_no_limit() -> None:
    assert Arrivals(1000.0, 1.0).is_carried_by(900)
    assert not Arrivals(100_000.0, 1.0).is_carried_by(90_000)
    assert not RateTrial(1e5, 1.0, 9e4, excess={P99.text: 0.0}, is_sustained=False).keeps(P99)


@pytest.mark.parametrize(
    ("metric", "limit", "share"), [("mean", "2ms", 0.0), ("mean", "1ms", 1.0), ("max", "9ms", 0.0)]
)
def test_mean_and_largest_latency(metric: str, limit: str, share: float) -> None:
    total = _measured([1_000_000] * 990 + [9_000_000] * 10)
    assert excess_share(Limit.parse(f"{metric}<={limit}"), total, Arrivals(1000.0, 1.0)) == share
    over = excess_share(Limit.parse("max<=8.99ms"), total, Arrivals(1000.0, 1.0))
    assert over >= 0.001


def test_goal_is_read_and_nonsense_is_one_line() -> None:
    assert parse_goal("width=2%,exceed=0.25,sum=30s,trial=2s,first=500ms") == RateGoal(0.02, 0.25, 30.0, 2.0, 0.5)
    assert parse_goal("") == RateGoal()
    for text in ("width", "depth=3", "width=0", "width=nan", "exceed=1", "sum=x", "first=2s", "width=5%%"):
        with pytest.raises(UsageError, match="--goal"):
            parse_goal(text)
