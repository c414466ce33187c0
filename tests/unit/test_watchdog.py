"""What is noticed about a running load, from counters made by hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.running.counter_reader import (
    ACTIVE,
    FAILING,
    IOS,
    LATENCIES,
    OUTSTANDING_NS,
    PEAKS,
    SERVICES,
    InFlight,
    KeptPeaks,
    in_flight_between,
)
from engine.running.supervisor import GIVE_UP_S, FailureNews, FailureWatch

SECOND_NS = 1_000_000_000


def counters(active: list[int], failing: list[int]) -> NDArray[np.uint64]:
    values = np.zeros((len(active), 17), np.uint64)
    values[:, ACTIVE], values[:, FAILING] = active, failing
    return values


def test_a_change_is_news_once() -> None:
    watch = FailureWatch()
    assert watch.observe(counters([1, 1], [0, 0]), 0) == FailureNews()
    assert watch.observe(counters([1, 1], [0, 1]), 0) == FailureNews(began=(1,))
    assert watch.observe(counters([1, 1], [0, 1]), 0) == FailureNews()
    assert watch.observe(counters([1, 1], [0, 0]), 0) == FailureNews(recovered=(1,))


def test_a_target_that_leaves_the_stripe_has_not_recovered() -> None:
    watch = FailureWatch()
    watch.observe(counters([1, 1], [0, 1]), 0)
    assert watch.observe(counters([1, 0], [0, 1]), 0) == FailureNews()
    assert watch.observe(counters([1, 1], [0, 1]), 0) == FailureNews(began=(1,))


def test_it_gives_up_only_when_every_active_target_fails_for_long() -> None:
    watch = FailureWatch()
    late_ns = int((GIVE_UP_S + 1) * SECOND_NS)
    watch.observe(counters([1, 1, 0], [1, 0, 0]), 0)
    assert not watch.hopeless(late_ns)
    watch.observe(counters([1, 1, 0], [1, 1, 0]), SECOND_NS)
    assert not watch.hopeless(int(GIVE_UP_S * SECOND_NS))
    assert watch.hopeless(late_ns + SECOND_NS)
    watch.observe(counters([1, 1, 0], [1, 0, 0]), 2 * SECOND_NS)
    watch.observe(counters([1, 1, 0], [1, 1, 0]), late_ns)
    assert not watch.hopeless(late_ns + SECOND_NS), "the time starts anew"


class _Engine:
    """Counters whose peaks are gone once read, as every backend has them."""

    def __init__(self) -> None:
        self.peak_ns = 0

    def counters(self) -> NDArray[np.uint64]:
        values = np.zeros((1, 17), np.uint64)
        values[0, 3], self.peak_ns = self.peak_ns, 0
        return values


def _totals(ios: int, latency_ns: int, service_ns: int, outstanding_ns: int) -> NDArray[np.uint64]:
    """Half of it on each of two targets, and each half in one direction."""
    values = np.zeros((2, OUTSTANDING_NS + 1), np.uint64)
    for row, direction in enumerate((0, 1)):
        for columns, total in ((IOS, ios), (LATENCIES, latency_ns), (SERVICES, service_ns)):
            values[row, columns[direction]] = total // 2
        values[row, OUTSTANDING_NS] = outstanding_ns // 2
    return values


def test_ios_in_flight_are_the_times_of_those_that_completed_and_of_those_that_have_not() -> None:
    """Two that are 1 s old end at the begin; two that are issued then are still there 2 s later."""
    before, after = _totals(0, 0, 0, 2 * SECOND_NS), _totals(2, 2 * SECOND_NS, 0, 4 * SECOND_NS)
    assert in_flight_between(before, after, 2.0) == InFlight(2.0, None)
    assert in_flight_between(before, before, 2.0) == InFlight(0.0, None)


def test_an_arrival_that_waits_to_be_submitted_is_not_in_flight() -> None:
    before, after = _totals(10, 9 * SECOND_NS, 0, 0), _totals(14, 29 * SECOND_NS, 2 * SECOND_NS, 0)
    assert in_flight_between(before, after, 4.0) == InFlight(0.5, SECOND_NS / 2)


def test_looking_at_counters_takes_no_peak_from_who_reads_them() -> None:
    engine = _Engine()
    tap = KeptPeaks(engine.counters, PEAKS)
    engine.peak_ns = 70
    assert tap.peek()[0, 3] == 70
    engine.peak_ns = 30
    assert tap.peek()[0, 3] == 70
    engine.peak_ns = 90
    assert tap.take()[0, 3] == 90
    assert tap.take()[0, 3] == 0
