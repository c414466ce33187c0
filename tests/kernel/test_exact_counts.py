"""What the exact tier counts beside plain times: groups, slow I/Os, waits for tags, devices without requests."""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from engine import _native
from engine.job.spec import Knobs
from tests import needs
from tests.kernel.backends import OpenFile, running
from tests.kernel.block_events import event_log, refusal
from tests.kernel.tracing import PATIENCE_S, eventually, grown, opened, queue_set, read_device, read_extents, row_of

pytestmark = [pytest.mark.alone, needs.loop, needs.tracer]

SIZE_BYTES = 64 << 20
ATTEMPTS = 10
"""Where other work keeps the threads from running, requests are free when they do."""
SECTOR_BYTES = 512
IN_DRIVER = _native.TRACE_COLUMNS.index("in_driver_now")
SHM = Path("/dev/shm")
"""tmpfs: files there cause no block I/O of their own."""


MORE_THAN_PLACES = 9
"""A CPU gathers the sums of so many devices and directions at once, and of one more."""
IO_BYTES, IO_SET_BYTES = 32, 128
"""struct io and struct io_set of engine/native/bpf/layout.h; the first word of an I/O is its key, 0 where none is."""
NO_REQUEST = 1
LOCKS_OF_CELLS_AND_POOLS = slice(1024, 1792 + 1)
"""Those of engine/native/bpf/atomics.h but for the first, which I/Os need to be timed at all."""
SLOW_WORDS, DONE, LATENCY, DEVICE_AND_BYTES = 14, 0, 1, 7
"""struct slow_io there, in words of 64 bits, and the places of some."""


def name(device: str) -> str:
    return device.removeprefix("/dev/")


def test_a_group_is_busy_while_any_member_is(make_loop: Callable[..., str], tracer: _native.BlockTracer) -> None:
    first, second = make_loop(SIZE_BYTES, SHM), make_loop(SIZE_BYTES, SHM)
    with ExitStack() as stack:
        descriptors = [stack.enter_context(opened(device)) for device in (first, second)]
        for descriptor in descriptors:
            read_extents(descriptor, [(0, 4096)])
        tracer.regroup([[name(first)], [name(second)], [name(first), name(second)]])
        before, groups_before = [read_device(tracer, one)["busy_ns"] for one in (first, second)], tracer.read_groups()
        targets = [OpenFile(descriptor, "loop", SIZE_BYTES, 4096) for descriptor in descriptors]
        started_ns = time.monotonic_ns()
        with running("uring", targets, Knobs(queue_depth=2, stripe_width=2)):
            time.sleep(0.5)
            eventually(lambda: not tracer.read()[:, IN_DRIVER].any(), "loops stay busy")
    elapsed_ns = time.monotonic_ns() - started_ns
    busy = [read_device(tracer, one)["busy_ns"] - was for one, was in zip((first, second), before, strict=True)]
    groups = (tracer.read_groups() - groups_before)[:, 0].tolist()
    assert groups[:2] == pytest.approx(busy, rel=0.001, abs=1000)
    assert 0 < max(busy) <= groups[2] * 1.001
    assert groups[2] <= min(sum(busy), elapsed_ns) * 1.001
    assert not tracer.read_groups()[:, 1].any()


@needs.io_uring
def test_groups_change_under_load_without_losing_their_balance(
    make_loop: Callable[..., str], tracer: _native.BlockTracer
) -> None:
    devices = [make_loop(SIZE_BYTES, SHM) for _ in range(2)]
    one, other = map(name, devices)
    groupings = [[[one, other]], [[one], [other], [one, other]], [[other]], []]
    with ExitStack() as stack:
        descriptors = [stack.enter_context(opened(device)) for device in devices]
        targets = [OpenFile(descriptor, "loop", SIZE_BYTES, 4096) for descriptor in descriptors]
        with running("uring", targets, Knobs(queue_depth=1, stripe_width=2)):
            for number in range(200):
                tracer.read()
                tracer.regroup(groupings[number % 4])
                assert np.all(tracer.read_groups()[:, 1] <= 2)
    tracer.regroup([[one], [other], [one, other]])
    eventually(lambda: not tracer.read()[:, IN_DRIVER].any(), "loops stay busy")
    still = tracer.read_groups()
    assert not still[:, 1].any()
    assert np.array_equal(tracer.read_groups(), still)


def test_a_group_with_the_same_members_goes_on_counting(
    make_loop: Callable[..., str], tracer: _native.BlockTracer
) -> None:
    device = make_loop(SIZE_BYTES, SHM)
    tracer.regroup([[name(device)]])
    with opened(device) as descriptor:
        read_extents(descriptor, [(0, 4096)])
        tracer.read()
        read_extents(descriptor, [(number * 4096, 4096) for number in range(100)])
    busy_ns = int(tracer.read_groups()[0, 0])
    assert busy_ns > 0
    tracer.regroup([["no-such-disk"], [name(device)]])
    assert tracer.read_groups()[:, 0].tolist() == [0, busy_ns]


def test_devices_that_share_a_place_of_a_cpu_keep_their_own_sums(
    make_loop: Callable[..., str], tracer: _native.BlockTracer
) -> None:
    devices = [make_loop(SIZE_BYTES, SHM) for _ in range(MORE_THAN_PLACES)]
    with ExitStack() as stack:
        descriptors = [stack.enter_context(opened(device)) for device in devices]
        before = [read_device(tracer, device) for device in devices]
        seen: list[dict[str, int]] = []
        for round_ in range(20):
            for number, descriptor in enumerate(descriptors):
                read_extents(descriptor, [(4096 * round_, 4096 * (number + 1))])
                os.pwrite(descriptor, mmap.mmap(-1, 4096), 4096 * round_)
            seen = [grown(was, read_device(tracer, device)) for was, device in zip(before, devices, strict=True)]
            assert [one["writes"] for one in seen] == [round_ + 1] * len(devices)
    for number, one in enumerate(seen):
        assert one["write_bytes"] == 20 * 4096
        # Whoever looks at a new device may read, too.
        assert one["reads"] >= 20
        assert one["read_bytes"] >= 20 * 4096 * (number + 1)
        assert one["service_read_ns"] > 0 < one["service_write_ns"]


def test_more_groups_than_a_device_counts_in_are_refused(tracer: _native.BlockTracer) -> None:
    with pytest.raises(ValueError, match="sda is in 9 groups"):
        tracer.regroup([["sda", f"member{number}"] for number in range(9)])


def test_slow_ios_name_who_and_where(make_loop: Callable[..., str], tracer: _native.BlockTracer) -> None:
    device = make_loop(SIZE_BYTES, SHM)
    extents = [(number << 20, 4096 << (number % 7)) for number in range(40)]
    with opened(device) as descriptor:
        read_device(tracer, device)
        thread = threading.Thread(target=read_extents, args=(descriptor, extents))
        thread.start()
        process, number = os.getpid(), thread.native_id
        thread.join()
        seen = read_device(tracer, device)
    values, commands = tracer.slowest()
    mine = np.flatnonzero(values[:, 1] == row_of(tracer, device))
    columns = dict(zip(_native.SLOW_COLUMNS, values[mine].T, strict=True))
    assert 0 < len(mine) <= len(extents)
    assert columns["latency_ns"].max() == seen["latency_max_ns"]
    assert np.array_equal(columns["latency_ns"], columns["queue_ns"] + columns["service_ns"])
    whole = {(offset // SECTOR_BYTES, length) for offset, length in extents}
    assert set(zip(columns["sector"].tolist(), columns["bytes"].tolist(), strict=True)) <= whole
    assert set(columns["process"].tolist()) == {process}
    assert set(columns["thread"].tolist()) == {number}
    assert np.all(columns["operation"] == 0)
    assert np.all(columns["done_ns"] < time.monotonic_ns())
    own = Path(f"/proc/{process}/comm").read_text().strip()
    assert {commands[row] for row in mine} == {own}


@needs.io_uring
def test_slow_ios_are_few_and_contain_the_slowest(make_loop: Callable[..., str], tracer: _native.BlockTracer) -> None:
    device = make_loop(SIZE_BYTES, SHM)
    with opened(device) as descriptor:
        target = OpenFile(descriptor, device, SIZE_BYTES, 4096)
        with running("uring", [target], Knobs(queue_depth=8)):
            most, intervals = 0, 0
            deadline_s = time.monotonic() + 3 * PATIENCE_S
            # The threshold falls step by step: after a long pause of the machine it needs intervals to find many again.
            while intervals < 5 or most < 8:
                assert time.monotonic() < deadline_s, f"at most {most} slow I/Os in each of {intervals} intervals"
                time.sleep(0.2)
                if not (seen := read_device(tracer, device))["latency_max_ns"]:
                    continue
                values, _ = tracer.slowest()
                mine = values[values[:, 1] == row_of(tracer, device)]
                latencies = mine[:, _native.SLOW_COLUMNS.index("latency_ns")]
                assert latencies[0] == seen["latency_max_ns"]
                assert np.all(np.diff(latencies.astype(np.int64)) <= 0)
                assert len(values) <= 128 * (os.cpu_count() or 1)
                most, intervals = max(most, len(mine)), intervals + 1


def test_a_device_of_which_many_are_slow_does_not_push_out_the_slowest_of_another(
    make_loop: Callable[..., str], tracer: _native.BlockTracer
) -> None:
    flooding, other = make_loop(SIZE_BYTES, SHM), make_loop(SIZE_BYTES, SHM)
    for device in (flooding, other):
        with opened(device) as descriptor:
            read_extents(descriptor, [(0, 4096)])
    read_device(tracer, other)
    # Index 0 is no device.
    flood(tracer, row_of(tracer, flooding) + 1)
    with opened(other) as descriptor:
        read_extents(descriptor, [(number * 4096, 4096) for number in range(20)])
    largest = read_device(tracer, other)["latency_max_ns"]
    values, _ = tracer.slowest()
    assert np.count_nonzero(values[:, 1] == row_of(tracer, flooding)) > 0
    assert largest in values[values[:, 1] == row_of(tracer, other), _native.SLOW_COLUMNS.index("latency_ns")]


def flood(tracer: _native.BlockTracer, index: int) -> None:
    """Fill all places for slow I/Os with very slow ones of a device."""
    with mapped(tracer, "slow_ios", SLOW_WORDS * 8) as table:
        words = np.frombuffer(table, "<u8").reshape(-1, SLOW_WORDS)
        words[:, DONE], words[:, LATENCY], words[:, DEVICE_AND_BYTES] = 1, 10**10, index
        del words


def test_waits_for_a_tag_are_timed_while_watched(make_loop: Callable[..., str], tracer: _native.BlockTracer) -> None:
    """Thirty-two threads share four requests: most wait before they get one."""
    device = make_loop(SIZE_BYTES, SHM)
    with queue_set(device, scheduler="none", nr_requests="4"), opened(device) as descriptor:
        target = OpenFile(descriptor, device, SIZE_BYTES, 4096)

        def load() -> dict[str, int]:
            before = read_device(tracer, device)
            with running("threads", [target], Knobs(queue_depth=32)):
                time.sleep(0.3)
            return grown(before, read_device(tracer, device))

        assert load()["tag_waits"] == 0
        tracer.watch_tag_wait(True)
        for _ in range(ATTEMPTS):
            watched = load()
            served_ns = (watched["queue_read_ns"] + watched["service_read_ns"]) / watched["reads"]
            if watched["tag_wait_ns"] / max(watched["tag_waits"], 1) > served_ns:
                break
        slow = tracer.slowest()[0]
        tracer.watch_tag_wait(False)
        assert load()["tag_waits"] == 0
    assert watched["tag_waits"] == pytest.approx(watched["reads"], rel=0.05, abs=64)
    assert watched["tag_wait_ns"] / watched["tag_waits"] > served_ns
    mine = slow[slow[:, 1] == row_of(tracer, device)]
    assert np.count_nonzero(mine[:, _native.SLOW_COLUMNS.index("tag_wait_ns")]) > 0


@pytest.mark.skipif(bool(refusal()), reason=refusal())
def test_an_io_too_large_for_the_device_counts_each_cut(
    make_loop: Callable[..., str], tracer: _native.BlockTracer
) -> None:
    """As many as the kernel's own event tells of: eight requests of 128 KiB are seven cuts of 1 MiB."""
    device = make_loop(SIZE_BYTES, SHM)
    number = Path(device).stat().st_rdev
    with (
        event_log(os.major(number), os.minor(number), more=("block_split",)) as log,
        queue_set(device, max_sectors_kb="128", scheduler="none"),
        opened(device) as descriptor,
    ):
        before = read_device(tracer, device)
        log.start()
        read_extents(descriptor, [(at << 20, 1 << 20) for at in range(20)])
        read_extents(descriptor, [(at << 20, 1 << 16) for at in range(30)])
        seen = grown(before, read_device(tracer, device))
        told = log.count("block_split")
    assert seen["splits"] == told == 20 * 7
    assert (seen["reads"], seen["read_bytes"]) == (20 * 8 + 30, (20 << 20) + (30 << 16))


def test_a_queue_without_time_stamps_has_service_time_only(
    make_loop: Callable[..., str], tracer: _native.BlockTracer
) -> None:
    device = make_loop(SIZE_BYTES, SHM)
    with queue_set(device, scheduler="none", iostats="0"), opened(device) as descriptor:
        read_extents(descriptor, [(number * 4096, 4096) for number in range(200)])
    seen = read_device(tracer, device)
    assert 190 < seen["reads"] <= 200
    assert seen["unstamped"] == seen["reads"]
    assert seen["queue_read_ns"] == seen["queue_max_ns"] == 0
    assert seen["service_read_ns"] > 0
    _, series, _, count = tracer.cells()
    assert count[series == 2].sum() >= seen["reads"]


def test_what_finds_no_room_among_those_under_way_is_counted_as_lost(
    make_loop: Callable[..., str], tracer: _native.BlockTracer
) -> None:
    device = make_loop(SIZE_BYTES, SHM)
    extents = [(number * 4096, 4096) for number in range(100)]
    with opened(device) as descriptor:
        read_extents(descriptor, extents)
        known = read_device(tracer, device)
        with no_room(tracer):
            read_extents(descriptor, extents)
        full = grown(known, read_device(tracer, device))
        # Others may have their I/Os lost too.
        assert tracer.losses()["table_full"] >= 95
        assert full["reads"] == full["busy_ns"] == full["in_flight_now"] == 0
        read_extents(descriptor, extents)
        after = grown(known, read_device(tracer, device))
    assert 95 <= after["reads"] <= 100
    assert after["in_flight_now"] == after["in_driver_now"] == 0


def test_what_finds_a_lock_held_is_counted_at_the_end_of_the_interval(make_loop: Callable[..., str]) -> None:
    """An interrupt cannot wait for what it has interrupted, nor a CPU for one that the hypervisor has stopped."""
    device = make_loop(SIZE_BYTES, SHM)
    with closing(_native.BlockTracer(fetch=False)) as tracer, opened(device) as descriptor:
        read_extents(descriptor, [(0, 4096)])
        before = read_device(tracer, device)
        with held(tracer, LOCKS_OF_CELLS_AND_POOLS):
            read_extents(descriptor, [(number * 65536, 65536) for number in range(1, 4)])
        seen = grown(before, read_device(tracer, device))
        row = row_of(tracer, device)
        slow = [dict(zip(_native.SLOW_COLUMNS, one, strict=True)) for one in tracer.slowest()[0].tolist()]
        mine = [one for one in slow if one["row"] == row]
        rows, series, _, count = tracer.cells()
        losses = tracer.losses()
    # Each was a new maximum, as none was kept.
    assert len(mine) == seen["reads"] == 3
    for part in ("queue", "service", "latency"):
        assert seen[f"{part}_max_ns"] == max(one[f"{part}_ns"] for one in mine)
    assert [int(count[(rows == row) & (series == one)].sum()) for one in range(4)] == [4, 0, 4, 0]
    assert losses["overtaken"] == seen["uncounted"] == 0


@contextmanager
def held(tracer: _native.BlockTracer, locks: slice) -> Iterator[None]:
    """Hold locks as a program does that is interrupted."""
    with mapped(tracer, "locks", 8) as table:
        holders = np.frombuffer(table, "<u8")[locks]
        holders += 1
        try:
            yield
        finally:
            holders -= 1
            del holders


@contextmanager
def mapped(tracer: _native.BlockTracer, name: str, value_bytes: int) -> Iterator[mmap.mmap]:
    """Map one of the tracer's maps of the kernel."""
    descriptors = tracer.map_descriptors()
    try:
        with mmap.mmap(descriptors[name], entries_of(descriptors[name]) * value_bytes) as table:
            yield table
    finally:
        for descriptor in descriptors.values():
            os.close(descriptor)


@contextmanager
def no_room(tracer: _native.BlockTracer) -> Iterator[None]:
    """Take all free places of the table of I/Os under way, as so many I/Os would."""
    with mapped(tracer, "under_way", IO_SET_BYTES) as table:
        keys = np.frombuffer(table, "<u8")[:: IO_BYTES // 8]
        free = np.flatnonzero(keys == 0)
        keys[free] = NO_REQUEST
        try:
            yield
        finally:
            keys[free] = 0
            del keys


def entries_of(descriptor: int) -> int:
    """Count the entries of a BPF map."""
    lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("max_entries:"))


def test_without_room_for_histograms_counters_go_on(make_loop: Callable[..., str]) -> None:
    devices = [make_loop(SIZE_BYTES, SHM) for _ in range(3)]
    tracer = _native.BlockTracer(histograms=1)
    try:
        for device in devices:
            with opened(device) as descriptor:
                read_extents(descriptor, [(number * 4096, 4096) for number in range(50)])
        assert all(read_device(tracer, device)["reads"] > 40 for device in devices)
        row, _, _, count = tracer.cells()
        assert count.sum() > 0
        assert len(np.unique(row)) < len(tracer.names())
        assert tracer.losses()["series_without_histogram"] > 0
    finally:
        tracer.close()


@pytest.fixture
def empty_zram() -> Iterator[str]:
    """A disk without requests that has no size yet."""
    control = Path("/sys/class/zram-control")
    if not control.exists():
        pytest.skip("the kernel has no zram, the one disk without requests that can be made here")
    number = (control / "hot_add").read_text().strip()
    try:
        yield f"/dev/zram{number}"
    finally:
        Path(f"/sys/block/zram{number}/reset").write_text("1")
        (control / "hot_remove").write_text(number)


def grow(zram: str) -> None:
    Path("/sys/block", name(zram), "disksize").write_text(str(SIZE_BYTES))


@pytest.mark.parametrize("watched_while_empty", [False, True])
def test_a_disk_without_requests_is_timed_by_its_bios(empty_zram: str, watched_while_empty: bool) -> None:
    """No event tells that such a disk got its size; reading finds out."""
    zram = empty_zram
    if not watched_while_empty:
        grow(zram)
    tracer = _native.BlockTracer()
    try:
        if watched_while_empty:
            tracer.read()
            grow(zram)
            tracer.read()
        with opened(zram) as descriptor:
            with mmap.mmap(-1, 4096) as page:
                page[:] = os.urandom(4096)
                for number in range(100):
                    assert os.pwritev(descriptor, [page], number * 4096) == 4096
            read_extents(descriptor, [(number * 4096, 4096) for number in range(100)])
        seen = read_device(tracer, zram)
        assert 90 < seen["writes"] <= 100
        assert 90 < seen["reads"] <= 110
        assert seen["write_bytes"] == seen["writes"] * 4096
        assert seen["service_write_ns"] > 0
        assert seen["queue_write_ns"] == seen["unstamped"] == seen["in_flight_now"] == 0
        assert 0 < seen["busy_ns"] < 10e9
    finally:
        tracer.close()
