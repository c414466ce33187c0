"""The books of the asyncio engine, without any I/O."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.aio.engine import Pace
from engine.aio.files import MAX_OUTSTANDING, AioTarget, check_knobs
from engine.aio.next_io import READ, Plan, PlannedIo, Stripe
from engine.aio.stats import SETTLE_NS, Call, Stats
from engine.job.spec import BlockShare, Knobs

IO = PlannedIo(0, READ, 8192, 4096)


class Clock:
    now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


@pytest.fixture
def clock() -> Clock:
    return Clock()


def stats_of(clock: Clock, targets: int = 1, knobs: Knobs | None = None) -> Stats:
    return Stats(targets, knobs or Knobs(), clock_ns=clock)


def issue(stats: Stats, io: PlannedIo = IO) -> Call:
    call = stats.begin(io, stats.knobs)
    assert call is not None
    return call


def complete(stats: Stats, call: Call) -> None:
    stats.end(call, memoryview(b"x" * 4096))


def test_measuring_waits_for_the_settling_time_and_for_older_ios(clock: Clock) -> None:
    stats = stats_of(clock)
    stats.open()
    old = issue(stats)
    clock.now_ns = turned_ns = 5 * SETTLE_NS
    assert stats.turn(Knobs(queue_depth=2)) == 1
    assert stats.begin(IO, Knobs()) is None, "planned with knobs of the epoch before"
    clock.now_ns = turned_ns + 2 * SETTLE_NS
    stats.settle()
    assert stats.epochs()[1].start_ns is None, "an I/O of the epoch before is still outstanding"
    complete(stats, old)
    clock.now_ns = turned_ns + SETTLE_NS - 1
    stats.settle()
    assert stats.epochs()[1].start_ns is None, "the settling time is not over"
    clock.now_ns = turned_ns + 3 * SETTLE_NS
    stats.settle()
    new = issue(stats)
    clock.now_ns += 3000
    complete(stats, new)
    first, second = stats.epochs()
    assert first.end_ns == turned_ns
    assert (second.transient_ios, second.counts[0, READ].tolist()) == (1, [1, 4096, 3000, 3000, 3000, 0])
    assert first.counts.sum() == 0, "what completed after the turn is not the old epoch's"
    assert stats.counters()[0, :4].tolist() == [2, 8192, 7 * SETTLE_NS + 3000, 7 * SETTLE_NS]


@pytest.mark.slow
@given(st.integers(2, 5), st.integers(1, 4), st.integers(1, 6), st.data())
def test_extents_cover_a_logical_range_byte_by_byte(width: int, unit: int, rows: int, data: st.DataObject) -> None:
    stripe = Stripe(width, unit, rows)
    start = data.draw(st.integers(0, stripe.capacity_bytes - 1))
    length = data.draw(st.integers(1, stripe.capacity_bytes - start))
    expected = set()
    for byte in range(start, start + length):
        number = byte // unit
        expected.add((number % width, number // width * unit + byte % unit))
    extents = list(stripe.extents(start, length))
    covered = [(target, at) for target, offset, size in extents for at in range(offset, offset + size)]
    assert len(covered) == length
    assert set(covered) == expected
    assert len({target for target, _, _ in extents}) == len(extents)


def test_a_block_beyond_the_unit_becomes_parts_and_a_lagging_target_holds_the_others_back() -> None:
    knobs, failing = Knobs(stripe_width=2, blocks=(BlockShare(8192),)), set[int]()
    plan = Plan([1 << 20] * 2, 4096, 1, failing.__contains__, sequential=True)
    plan.enter(knobs)
    plan.draw(0, knobs)
    assert plan.take(0) == PlannedIo(0, READ, 0, 4096, 1)
    assert plan.take(0) is None
    while not plan.blocked(knobs):
        plan.draw(0, knobs)
        assert plan.take(0) is not None
    failing.add(1)
    assert not plan.blocked(knobs), "a failing target holds nobody back"
    assert plan.take(1) == PlannedIo(1, READ, 0, 4096, 2)
    plan.enter(Knobs(stripe_width=2, blocks=(BlockShare(4096),)))
    assert plan.take(1) is None, "parts cut for other knobs are dropped"


async def test_a_pace_spaces_what_it_hands_out_and_takes_a_new_rate_at_once() -> None:
    rate_iops: float | None = 1000.0
    pace = Pace(lambda: rate_iops)
    await pace.take(lambda: True)
    began_s = time.monotonic()
    for _ in range(100):
        assert await pace.take(lambda: True)
    assert time.monotonic() - began_s >= 0.079, "what is late is made up for by 20 ms at most"
    rate_iops = 0.001
    assert not await pace.take(lambda: False), "who is no longer wanted does not wait"
    waiting = asyncio.create_task(pace.take(lambda: True))
    await asyncio.sleep(0)
    assert not waiting.done()
    rate_iops = None
    assert await waiting


def test_more_outstanding_than_threads_are_refused() -> None:
    targets = [AioTarget(0, "one", 65536, 512, writable=False)] * 2
    with pytest.raises(ValueError, match="use the uring or threads engine"):
        check_knobs(Knobs(queue_depth=MAX_OUTSTANDING, stripe_width=2), targets, MAX_OUTSTANDING, 65536)


def test_a_block_larger_than_the_stripe_is_refused() -> None:
    targets = [AioTarget(0, "one", 1 << 20, 512, writable=False)] * 2
    with pytest.raises(ValueError, match="larger than the stripe"):
        check_knobs(Knobs(stripe_width=2, blocks=(BlockShare(786432),)), targets, 1, 2 << 20)
