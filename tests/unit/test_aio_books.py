"""The books of the asyncio engine, without any I/O."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.aio.epoch import SETTLE_NS
from engine.aio.limits import MAX_OUTSTANDING, AioTarget, check_knobs
from engine.aio.loop import RatePace
from engine.aio.plan import Plan, PlannedIo, Stream, Stripe
from engine.aio.run_stats import FAILING_AFTER, RunStats
from engine.aio.slot import Buffer
from engine.aio.tally import READ, WRITE
from engine.job.spec import BlockShare, Knobs

IO = PlannedIo(READ, 8192, 4096)


def issue(stats: RunStats) -> int:
    epoch = stats.issue(0, stats.knobs)
    assert epoch is not None
    return epoch


def test_measuring_waits_for_the_settling_time_and_for_older_ios() -> None:
    stats = RunStats(1, Knobs())
    stats.open(0)
    old = issue(stats)
    turned_ns = 5 * SETTLE_NS
    stats.settle(turned_ns - 1)
    assert stats.turn(Knobs(queue_depth=2), turned_ns) == 1
    assert stats.issue(0, Knobs()) is None, "planned with knobs of the epoch before"
    new = issue(stats)
    assert (new, stats.knobs.queue_depth) == (1, 2)
    stats.settle(turned_ns + 2 * SETTLE_NS)
    assert stats.epochs()[1].start_ns is None, "an I/O of the epoch before is still outstanding"
    stats.complete(old, 0, IO, 1000, turned_ns + 2 * SETTLE_NS, issued_ns=0)
    stats.settle(turned_ns + SETTLE_NS - 1)
    assert stats.epochs()[1].start_ns is None, "the settling time is not over"
    stats.settle(turned_ns + 3 * SETTLE_NS)
    stats.complete(new, 0, IO, 3000, turned_ns + 4 * SETTLE_NS, issued_ns=0)
    first, second = stats.epochs()
    assert first.end_ns == turned_ns
    assert (second.transient_ios, second.counts[0, READ].tolist()) == (1, [1, 4096, 3000, 3000, 3000, 0])
    assert first.counts.sum() == 0, "what completed after the turn is not the old epoch's"
    assert stats.counters()[0, :4].tolist() == [2, 8192, 4000, 3000]


def test_peaks_are_taken_and_everything_else_stays() -> None:
    stats = RunStats(2, Knobs(queue_depth=7, stripe_width=1))
    for latency_ns in (500, 900):
        epoch = issue(stats)
        stats.complete(epoch, 0, IO, latency_ns, 0, issued_ns=0)
    assert stats.counters()[0, 3] == 900
    again = stats.counters()
    assert again[0].tolist() == [2, 8192, 1400, 0, 0, 0, 0, 0, 0, 0, 7, 1, 0, 0, 0, 0, 0, 0]
    assert again[1, 10:12].tolist() == [0, 0], "a target outside the stripe is not active"


def test_errors_are_counted_with_the_offset_of_the_first_and_stop_a_target() -> None:
    stats = RunStats(1, Knobs())
    for offset in range(FAILING_AFTER):
        assert not stats.failing(0)
        epoch = issue(stats)
        stats.fail(epoch, 0, PlannedIo(WRITE, 4096 * (offset + 3), 4096), 5, now_ns=offset)
    assert stats.failing(0)
    assert stats.errors() == [(0, "write", 5, 12288, FAILING_AFTER)]
    assert stats.counters()[0, [8, 9, 12]].tolist() == [FAILING_AFTER, 0, 1]
    stats.complete(issue(stats), 0, IO, 1, FAILING_AFTER + 1, issued_ns=FAILING_AFTER - 1)
    assert stats.failing(0), "an old success is no answer"
    stats.complete(issue(stats), 0, IO, 1, FAILING_AFTER + 1, issued_ns=FAILING_AFTER)
    assert not stats.failing(0)


def test_average_peak_is_of_the_seconds_that_had_any() -> None:
    stats = RunStats(1, Knobs())
    stats.open(0)
    stats.settle(SETTLE_NS)
    for at_s, latency_ns in ((0.1, 10), (0.9, 30), (3.5, 50)):
        epoch = issue(stats)
        stats.complete(epoch, 0, IO, latency_ns, SETTLE_NS + int(at_s * 1e9), issued_ns=0)
    assert stats.epochs()[0].peaks[0].tolist() == [[80, 2], [0, 0], [80, 2]]


def test_a_sequential_stream_visits_everything_and_wraps() -> None:
    stream = Stream("1", sequential=True)
    offsets = [stream.draw(Knobs(blocks=(BlockShare(16384),)), 40960).offset for _ in range(4)]
    assert offsets == [0, 16384, 0, 16384]


def test_random_offsets_stay_aligned_inside_and_repeat_with_the_seed() -> None:
    knobs = Knobs(read_pct=30, blocks=(BlockShare(4096, 75.0), BlockShare(65536, 25.0)))

    def draws(seed: str) -> list[PlannedIo]:
        stream = Stream(seed, sequential=False)
        return [stream.draw(knobs, 1 << 20) for _ in range(4000)]

    ios = draws("7")
    assert ios == draws("7")
    assert ios != draws("8")
    assert all(io.offset % io.length == 0 and io.offset + io.length <= 1 << 20 for io in ios)
    assert len({io.offset for io in ios if io.length == 4096}) == 256
    assert sum(io.direction == READ for io in ios) / 4000 == pytest.approx(0.3, abs=0.04)
    assert sum(io.length == 65536 for io in ios) / 4000 == pytest.approx(0.25, abs=0.04)


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
    covered = [(part.target, at) for part in extents for at in range(part.offset, part.offset + part.length)]
    assert len(covered) == length
    assert set(covered) == expected
    assert len({part.target for part in extents}) == len(extents)


def test_a_block_beyond_the_unit_becomes_parts_and_a_lagging_target_holds_the_others_back() -> None:
    knobs = Knobs(stripe_width=2, blocks=(BlockShare(8192),))
    plan = Plan([1 << 20] * 2, 4096, 1, sequential=True)
    plan.enter(knobs)
    plan.draw(0, knobs, lambda _: False)
    assert plan.take(0) == PlannedIo(READ, 0, 4096, 1)
    assert plan.take(0) is None
    while not plan.blocked(knobs, lambda _: False):
        plan.draw(0, knobs, lambda _: False)
        assert plan.take(0) is not None
    assert not plan.blocked(knobs, lambda target: target == 1), "a failing target holds nobody back"
    assert plan.take(1) == PlannedIo(READ, 0, 4096, 2)
    plan.enter(Knobs(stripe_width=2, blocks=(BlockShare(4096),)))
    assert plan.take(1) is None, "parts cut for other knobs are dropped"


async def test_a_pace_spaces_what_it_hands_out() -> None:
    now_ns = 0

    def clock() -> int:
        nonlocal now_ns
        now_ns += 100_000
        return now_ns

    pace = RatePace(clock)
    pace.set_rate(1000.0)
    starts = []
    for _ in range(20):
        assert await pace.take(lambda: True)
        starts.append(now_ns)
    assert starts[-1] - starts[0] >= 19 * 1_000_000 - 100_000, "at most one step of the clock is lost"
    pace.set_rate(1.0)
    await pace.take(lambda: True)
    assert not await pace.take(lambda: False), "who is no longer wanted does not wait"
    pace.set_rate(None)
    before_ns = now_ns
    await pace.take(lambda: True)
    assert now_ns - before_ns <= 200_000


def test_written_pages_neither_compress_nor_repeat() -> None:
    buffer = Buffer(65536, "1")
    written: list[bytes] = []
    for _ in range(3):
        buffer.stamp(0, len(written))
        written.append(bytes(buffer.view(65536)))
    pages = {data[at : at + 4096] for data in written for at in range(0, 65536, 4096)}
    assert len(pages) == 48
    assert len(zlib.compress(written[0])) > 0.95 * 65536


def test_more_outstanding_than_threads_are_refused() -> None:
    targets = [AioTarget(0, "one", 65536, 512, writable=False)] * 2
    with pytest.raises(ValueError, match="use the uring or threads engine"):
        check_knobs(Knobs(queue_depth=MAX_OUTSTANDING, stripe_width=2), targets, MAX_OUTSTANDING, 65536)


def test_a_block_larger_than_the_stripe_is_refused() -> None:
    targets = [AioTarget(0, "one", 1 << 20, 512, writable=False)] * 2
    with pytest.raises(ValueError, match="larger than the stripe"):
        check_knobs(Knobs(stripe_width=2, blocks=(BlockShare(786432),)), targets, 1, 2 << 20)
