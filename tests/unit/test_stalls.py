"""How long disks have had I/Os outstanding and completed none, from sample to sample."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from collectors.alerts.parse import parse_rule
from collectors.alerts.watch import AlertWatch
from collectors.model import Rows, Table
from collectors.rates import derive
from collectors.tables.block.schema import DISK
from collectors.tables.block.stalls import StallClock
from tests.unit import raw_samples as raw

READS, FLUSHES, IN_FLIGHT, STALLED = (DISK.index(name) for name in ("reads", "flushes", "in_flight_now", "stalled_ms"))
SECOND_NS = 1_000_000_000


class Followed:
    """A stall clock that reads a table at every full second, which takes 10 ms."""

    def __init__(self) -> None:
        self._clock, self._seconds = StallClock(), count(1)

    def stalled_ms(self, rows: Rows, *disks: tuple[int, int]) -> list[int]:
        """Take reads and I/Os in flight of each disk."""
        values = np.zeros((len(rows), len(DISK.columns)), np.uint64)
        values[:, READS], values[:, IN_FLIGHT] = np.array(disks, np.uint64).T
        begun_ns = next(self._seconds) * SECOND_NS
        self._clock.fill(Table(DISK, rows, values), begun_ns, begun_ns + SECOND_NS // 100)
        return [int(value) for value in values[:, STALLED]]


def test_it_counts_from_the_sample_that_first_saw_the_present_state() -> None:
    followed, rows = Followed(), raw.rows("a", "b")
    assert followed.stalled_ms(rows, (5, 1), (5, 1)) == [0, 0]
    assert followed.stalled_ms(rows, (5, 1), (6, 1)) == [990, 0]
    assert followed.stalled_ms(rows, (5, 2), (6, 1)) == [1990, 990]
    assert followed.stalled_ms(rows, (5, 0), (6, 3)) == [0, 1990]
    assert followed.stalled_ms(rows, (5, 1), (7, 3)) == [0, 0]
    assert followed.stalled_ms(rows, (5, 1), (7, 3)) == [990, 990]


def test_it_follows_disks_that_come_and_go() -> None:
    followed = Followed()
    followed.stalled_ms(raw.rows("a", "b"), (5, 1), (0, 0))
    assert followed.stalled_ms(raw.rows("new", "a"), (5, 1), (5, 1)) == [0, 990]


def test_a_count_that_is_briefly_negative_is_no_stall() -> None:
    followed, rows = Followed(), raw.rows("a")
    for _ in range(2):
        assert followed.stalled_ms(rows, (5, (1 << 32) - 1)) == [0]


STALL = [
    {"reads": 100, "read_ms": 4_000, "busy_ms": 900 + 999 * s, "in_flight_now": 4, "stalled_ms": 1_000 * s}
    for s in range(4)
]
DONE = {"reads": 104, "read_ms": 16_000, "busy_ms": 4_000}


@pytest.mark.parametrize(
    ("text", "raised_s", "cleared_s"),
    [("disks await_ms>20ms for 0s clear 0s", 1, 6), ("disks stalled_ms>=2s for 0s", 3, 5)],
)
def test_no_alert_is_cleared_because_nothing_completes(text: str, raised_s: int, cleared_s: int) -> None:
    """The disk is slow, then stalls for seconds, and then completes all at once and is idle."""
    watch, rows = AlertWatch((parse_rule(text),)), raw.rows("vda")
    states = ({"in_flight_now": 4}, *STALL, DONE, DONE)
    samples = [raw.sample(at, disks=raw.disks(rows, {**raw.NO_SAMPLES, **state})) for at, state in enumerate(states)]
    befores = (None, *samples)
    events = [watch.observe(derive(before, now)) for before, now in zip(befores, samples, strict=False)]
    changes = [(at, event.data["change"]) for at, found in enumerate(events) for event in found]
    assert changes == [(raised_s, "raised"), (cleared_s, "cleared")]
