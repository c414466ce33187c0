"""The least rate of a job: how it is written, and when a load falls below it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.job.rate_floor import RateFloor
from engine.running.supervisor import RateWatch

SECOND_NS = 1_000_000_000
TICKS_PER_S = 20


def counters(read_ios: float, write_ios: float = 0.0) -> NDArray[np.uint64]:
    """Two targets, blocks of 4 KiB."""
    rows = np.zeros((2, 17), np.uint64)
    rows[0, [0, 1]] = int(read_ios), 4096 * int(read_ios)
    rows[1, [4, 5]] = int(write_ios), 4096 * int(write_ios)
    return rows


def failure(floor: RateFloor, rates: list[float], ramp_s: float = 0.0) -> tuple[float, str]:
    """Run a load with these I/Os per second, one for each second; when it is ended, and why."""
    watch, done = RateWatch(floor, ramp_s, 4096), 0.0
    for tick in range(len(rates) * TICKS_PER_S):
        elapsed_s = tick / TICKS_PER_S
        words = watch.observe(counters(done / 2, done / 2), round(elapsed_s * SECOND_NS), elapsed_s)
        if words:
            return elapsed_s, words
        done += rates[int(elapsed_s)] / TICKS_PER_S
    return 0.0, ""


def test_load_that_keeps_its_rate_goes_on() -> None:
    assert failure(RateFloor(100.0, in_bytes=False), [104.0] * 10) == (0.0, "")


def test_load_below_its_rate_ends_after_the_cycle_in_which_it_is() -> None:
    floor = RateFloor(100.0, in_bytes=False)
    assert failure(floor, [200.0] * 5 + [40.0] * 5)[0] == pytest.approx(6.0, abs=0.1)
    assert failure(floor, [200.0] * 5 + [40.0] * 5)[1] == "40 IOPS over the last 1 s, below the 100 IOPS of --rate-min"
    in_bytes = RateFloor(4096 * 100.0, in_bytes=True, cycle_s=3.0)
    assert failure(in_bytes, [200.0] * 5 + [40.0] * 5)[0] == pytest.approx(8.0, abs=0.1)


def test_slow_load_is_judged_when_an_io_completes_or_is_overdue() -> None:
    """An I/O of 4 KiB every 3.3 s is 1,250 bytes/s, with none in most cycles of a second."""
    watch = RateWatch(RateFloor(1024.0, in_bytes=True), 0.0, 4096)
    done = [0, *(tick * 15 // 1000 for tick in range(TICKS_PER_S * 60)), *[18] * TICKS_PER_S * 20]
    words = [
        watch.observe(counters(ios), tick * SECOND_NS // TICKS_PER_S, tick / TICKS_PER_S)
        for tick, ios in enumerate(done)
    ]
    assert next(tick for tick, said in enumerate(words) if said) / TICKS_PER_S > 61
    assert failure(RateFloor(100.0, in_bytes=False), [99.0] * 10)[0] < 5


def test_first_two_seconds_and_the_ramp_are_not_judged() -> None:
    floor = RateFloor(100.0, in_bytes=False)
    assert failure(floor, [0.0, 0.0, *[200.0] * 5]) == (0.0, "")
    assert failure(floor, [0.0] * 5 + [200.0] * 5, ramp_s=3.0) == (0.0, "")
    assert failure(floor, [0.0] * 10, ramp_s=3.0)[0] == pytest.approx(6.0, abs=0.1)


def test_stop_of_the_process_is_no_rate_of_the_load() -> None:
    watch = RateWatch(RateFloor(100.0, in_bytes=False), 0.0, 4096)
    assert watch.observe(counters(0), 3 * SECOND_NS, 3.0) == ""
    assert watch.observe(counters(10), 60 * SECOND_NS, 60.0) == ""
    assert watch.observe(counters(120), 61 * SECOND_NS, 61.0) == ""
    assert watch.observe(counters(130), 62 * SECOND_NS, 62.0) != ""
