"""I/Os of a load outstanding on average: from the times of those that completed and of those that have not yet."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from collectors.model import FrameTable
from collectors.rates import derive
from collectors.tables.load.schema import LOAD
from tests.unit import raw_samples as raw

SECOND_NS = 1_000_000_000
TARGET = raw.rows("a")
STUCK = {"read_ios": 7, "in_flight_now": 32, "outstanding_ns": 320 * SECOND_NS}


def load_table(before: Mapping[str, int], after: Mapping[str, int], *, earlier_version: bool = False) -> FrameTable:
    """The table of one target after a second, which is that of the whole load, too."""
    samples = [raw.sample(at_s, load=raw.load(TARGET, values)) for at_s, values in ((0, before), (1, after))]
    if earlier_version:
        samples = [raw.without_column(sample, LOAD.name, "outstanding_ns") for sample in samples]
    tables = derive(*samples).tables
    assert tables["load_total"].value("in_flight", 0) == tables["load"].value("in_flight", 0)
    return tables["load"]


def in_flight(before: Mapping[str, int], after: Mapping[str, int], *, earlier_version: bool = False) -> float:
    return load_table(before, after, earlier_version=earlier_version).value("in_flight", 0)


@pytest.mark.parametrize("earlier_version", [False, True])
def test_ios_that_do_not_complete_are_outstanding(*, earlier_version: bool) -> None:
    longer = STUCK | {"outstanding_ns": 352 * SECOND_NS}
    stalled = load_table(STUCK, longer, earlier_version=earlier_version)
    assert stalled.value("in_flight", 0) == 32.0
    assert math.isnan(stalled.value("max_ms", 0))


@pytest.mark.parametrize("earlier_version", [False, True])
def test_ios_that_take_longer_than_the_interval_are_outstanding(*, earlier_version: bool) -> None:
    """10 of 32 completed after 3.2 s each, and as many more were issued."""
    ten = STUCK | {"read_ios": 17, "read_latency_ns": 32 * SECOND_NS}
    assert in_flight(STUCK, ten, earlier_version=earlier_version) == 32.0


def test_the_time_before_the_interval_does_not_count_once_ios_complete() -> None:
    """All 32 complete at its begin, after 10 s each; then there are 32 at any time, which take 1 ms each."""
    after = {"read_ios": 32_039, "read_latency_ns": (320 + 32) * SECOND_NS, "in_flight_now": 32, "outstanding_ns": 0}
    assert in_flight(STUCK, after) == 32.0


def test_ios_that_fail_were_outstanding_until_then() -> None:
    """All 32 fail after half of the interval: their times stay in the column."""
    after = STUCK | {"errors": 32, "in_flight_now": 0, "outstanding_ns": 336 * SECOND_NS}
    assert in_flight(STUCK, after) == 16.0
