"""Modes, flushes and threads that turn while a load runs, and what an epoch costs in CPU."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from engine.backend.protocol import LoadBackend
from engine.job.io_priority import kernel_rules, parse_priorities
from engine.job.spec import Flush, Knobs, Mode
from tests import needs
from tests.kernel.backends import (
    BACKENDS,
    IN_FLIGHT,
    NATIVE,
    OUTSTANDING_NS,
    OpenFile,
    eventually,
    filled_file,
    ios,
    knobs_of,
    make_engine,
    measuring,
    opened,
    running,
)
from tests.kernel.throttle import stalled, throttle

MIB = 1 << 20
MakeLoop = Callable[..., str]


def _is_direct(target: OpenFile) -> bool:
    return bool(fcntl.fcntl(target.fd, fcntl.F_GETFL) & os.O_DIRECT)


def _goes_on(engine: LoadBackend, count: int = 200) -> None:
    before = ios(engine)
    eventually(lambda: ios(engine) >= before + count, f"{count} more I/Os")
    assert engine.errors() == []


@pytest.mark.parametrize("backend", NATIVE)
def test_the_mode_turns_on_the_open_file(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, size_bytes=MIB, writable=True) as targets, running(backend, targets, knobs_of()) as engine:
        _goes_on(engine)
        for mode in (Mode.BUFFERED, Mode.DIRECT, Mode.SYNC, Mode.DIRECT_DSYNC, Mode.DSYNC):
            engine.apply(knobs_of(mode=mode, read_pct=50.0))
            eventually(lambda: measuring(engine), "the epoch")
            assert _is_direct(targets[0]) == mode.is_direct
            _goes_on(engine)
        engine.apply(knobs_of(4, 1000, mode=Mode.BUFFERED))
        _goes_on(engine)
        with pytest.raises(ValueError, match="block 1000 is not a multiple of 512"):
            engine.apply(knobs_of(4, 1000))
        assert not _is_direct(targets[0])


@pytest.mark.parametrize("backend", NATIVE)
def test_a_file_without_direct_io_refuses_the_turn_and_the_load_goes_on(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, "/proc/self/maps", size_bytes=4096, direct=False) as targets:
        knobs = knobs_of(1, 512, mode=Mode.BUFFERED)
        with running(backend, targets, knobs) as engine:
            with pytest.raises(OSError, match=r"/proc/self/maps: direct I/O: Invalid argument"):
                engine.apply(knobs_of(1, 512))
            assert not _is_direct(targets[0])
            _goes_on(engine, 50)
            assert len(engine.epochs()) == 1


def test_the_aio_engine_turns_direct_io_neither_on_nor_off_and_the_load_goes_on(tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, size_bytes=MIB, writable=True) as targets, running("aio", targets, knobs_of()) as engine:
        with pytest.raises(ValueError, match=r"mode buffered turns direct I/O on or off, .*: start it anew"):
            engine.apply(knobs_of(mode=Mode.BUFFERED))
        _goes_on(engine)
        assert _is_direct(targets[0])
        assert len(engine.epochs()) == 1


@needs.loop
@throttle
@pytest.mark.parametrize("backend", NATIVE)
def test_the_mode_waits_for_what_is_outstanding(backend: str, make_loop: MakeLoop) -> None:
    device = make_loop(8 * MIB)
    with opened(device, size_bytes=8 * MIB) as targets:
        engine = make_engine(backend, targets, knobs_of(4))
        with stalled(device):
            engine.start()
            eventually(lambda: int(engine.counters()[0, IN_FLIGHT]) == 4, "4 outstanding")
            assert not engine.waits
            engine.apply(knobs_of(8, mode=Mode.BUFFERED))
            time.sleep(0.15)
            assert engine.waits
            # One a second gets through and is not replaced.
            assert 1 <= int(engine.counters()[0, IN_FLIGHT]) <= 4
            assert _is_direct(targets[0])
        eventually(lambda: measuring(engine), "the epoch")
        assert not engine.waits
        assert not _is_direct(targets[0])
        assert engine.stop()
    assert engine.errors() == []


@pytest.mark.parametrize("backend", NATIVE)
def test_cached_data_are_on_the_medium_and_out_of_memory_before_direct_io(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if _cached_pages(path):
        pytest.skip(f"needs files whose pages leave memory: those of {tmp_path} do not")
    knobs = knobs_of(read_pct=0.0, mode=Mode.BUFFERED)
    files = opened(path, size_bytes=MIB, writable=True, direct=False)
    with files as targets, running(backend, targets, knobs) as engine:
        _goes_on(engine)
        assert _cached_pages(path) > 0
        engine.apply(knobs_of(read_pct=0.0, mode=Mode.DIRECT))
        eventually(lambda: not engine.waits, "direct I/O")
        eventually(lambda: _cached_pages(path) == 0, "no page in memory")
        _goes_on(engine)


def _cached_pages(path: Path) -> int:
    """Pages of a file in memory, by mincore(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE) as memory:
        data = np.frombuffer(memory, np.uint8)
        resident = np.zeros(-(-len(data) // mmap.PAGESIZE), np.uint8)
        address, length = ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(len(data))
        assert libc.mincore(address, length, ctypes.c_void_p(resident.ctypes.data)) == 0
        del data
    return int((resident & 1).sum())


@needs.loop
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", [Mode.SYNC, Mode.DSYNC, Mode.DIRECT_SYNC, Mode.DIRECT_DSYNC])
def test_synchronous_writes_flush_the_device_and_buffered_ones_do_not(
    backend: str, mode: Mode, make_loop: MakeLoop
) -> None:
    device = make_loop(8 * MIB)
    unflushed = Mode.DIRECT if mode.is_direct else Mode.BUFFERED
    with opened(device, size_bytes=8 * MIB, writable=True, direct=mode.is_direct) as targets:
        with running(backend, targets, knobs_of(1, read_pct=0.0, mode=unflushed)) as engine:
            engine.apply(knobs_of(1, read_pct=0.0, mode=mode))
            eventually(lambda: measuring(engine), "the epoch")
            flushes, writes = _flushes(device), ios(engine)
            _goes_on(engine, 100)
            done = ios(engine) - writes
        assert _flushes(device) - flushes >= 0.9 * done
        with running(backend, targets, knobs_of(1, read_pct=0.0, mode=unflushed)) as engine:
            flushes = _flushes(device)
            _goes_on(engine, 100)
            assert _flushes(device) == flushes


def _flushes(device: str) -> int:
    """Flushes a device completed: field 16 of Documentation/block/stat.rst."""
    return int(Path("/sys/block", Path(device).name, "stat").read_text().split()[15])


@needs.loop
@pytest.mark.parametrize("flush", Flush)
@pytest.mark.parametrize("backend", NATIVE)
def test_one_flush_after_every_so_many_writes(backend: str, flush: Flush, make_loop: MakeLoop) -> None:
    device = make_loop(8 * MIB)
    with opened(device, size_bytes=8 * MIB, writable=True) as targets:
        before = _flushes(device)
        with running(backend, targets, knobs_of(4, read_pct=50.0, fsync_every=10, flush=flush)) as engine:
            eventually(lambda: measuring(engine), "the first epoch")
            _goes_on(engine, 400)
            engine.apply(knobs_of(4, read_pct=50.0))
            eventually(lambda: len(engine.epochs()) == 2 and measuring(engine), "the second epoch")
            flushed = _flushes(device)
            _goes_on(engine, 400)
            assert _flushes(device) == flushed
    first, second = engine.epochs()
    fsyncs, latency_ns, largest_ns, errors = first.fsyncs[0].tolist()
    assert abs(fsyncs - int(first.counts[0, 1, 0]) / 10) <= 5
    # One flush of the kernel may serve as many fsyncs as are under way at once.
    assert flushed - before >= fsyncs / 4
    assert 0 < largest_ns <= latency_ns
    assert latency_ns <= engine.counters()[0, OUTSTANDING_NS]
    assert errors == 0
    assert second.fsyncs[0, 0] == 0


@needs.io_uring
@needs.loop
def test_threads_turn_and_the_depth_is_never_exceeded(make_loop: MakeLoop) -> None:
    device = make_loop(8 * MIB)
    inflight = Path("/sys/block", Path(device).name, "inflight")
    with opened(device, size_bytes=8 * MIB) as targets, running("uring", targets, knobs_of(11)) as engine:
        for turn in range(60):
            engine.apply(knobs_of(11, threads=1 + turn * 5 % 8))
            for _ in range(20):
                assert engine.counters()[0, IN_FLIGHT] <= 11
                assert sum(map(int, inflight.read_text().split())) <= 11
        for threads in (8, 1, 3):
            engine.apply(knobs_of(11, threads=threads))
            eventually(lambda: measuring(engine), "the epoch")
            eventually(lambda: int(engine.counters()[0, IN_FLIGHT]) == 11, "the whole depth")
    assert sum(int(e.counts[:, :, 0].sum()) + e.transient_ios for e in engine.epochs()) == ios(engine)


@needs.io_uring
@needs.loop
@throttle
def test_threads_turned_on_a_stalled_device_keep_the_depth(make_loop: MakeLoop) -> None:
    device = make_loop(8 * MIB)
    with opened(device, size_bytes=8 * MIB) as targets:
        engine = make_engine("uring", targets, knobs_of(6))

        def holds(depth: int) -> bool:
            return int(engine.counters()[0, IN_FLIGHT]) == depth

        with stalled(device):
            engine.start()
            eventually(partial(holds, 6), "6 outstanding")
            for threads in (4, 2, 7):
                engine.apply(knobs_of(6, threads=threads))
                time.sleep(0.02)
                assert holds(6)
            turned = time.monotonic()
            engine.apply(knobs_of(20, threads=7))
            eventually(partial(holds, 20), "more outstanding")
            assert time.monotonic() - turned < 1
        eventually(lambda: measuring(engine), "the last epoch")
        assert engine.stop()


@needs.io_uring
def test_a_thousand_threads_come_and_go(tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    # At a rate: whoever runs beside a thousand threads that never wait gets a thousandth of a processor.
    knobs = partial(knobs_of, rate_iops=20_000.0)
    with opened(path, size_bytes=MIB) as targets, running("uring", targets, knobs(1000)) as engine:
        _goes_on(engine)
        engine.apply(knobs(1000, threads=1000))
        assert len([*Path("/proc/self/task").iterdir()]) >= 1000
        eventually(lambda: measuring(engine), "the epoch of a thousand")
        _goes_on(engine, 2000)
        engine.apply(knobs(1))
        _goes_on(engine)
    assert sum(int(e.counts[:, :, 0].sum()) + e.transient_ios for e in engine.epochs()) == ios(engine)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_epoch_says_what_it_cost(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, size_bytes=MIB) as targets, running(backend, targets, Knobs(queue_depth=4)) as engine:
        assert engine.epochs()[0].cpu_ns is None
        for depth in (2, 3):
            eventually(lambda: measuring(engine), "the epoch")
            _goes_on(engine, 1000)
            engine.apply(Knobs(queue_depth=depth))
        whole = engine.cpu_ns()
    spans = [epoch.cpu_ns for epoch in engine.epochs()]
    first_span, second_span, _ = spans
    assert first_span is not None
    assert second_span is not None
    for engine_ns, host_busy_ns, host_ns, waited_ns in (first_span, second_span):
        assert engine_ns > 0
        assert host_busy_ns <= host_ns
        assert (waited_ns is not None) == Path("/proc/self/schedstat").exists()
    assert first_span[0] + second_span[0] <= whole
    first = engine.epochs()[0]
    assert first.start_ns is not None
    assert first.end_ns is not None
    cores = first_span[2] / (first.end_ns - first.start_ns)
    # Ticks of 10 ms at both ends.
    assert abs(cores - (os.cpu_count() or 1)) <= 0.04e9 * (os.cpu_count() or 1) / (first.end_ns - first.start_ns)


def test_threads_have_the_priority_of_their_ios(tmp_path: Path) -> None:
    """What the kernel says of each thread: idle for reads, best effort 3 for writes."""
    rules = kernel_rules(parse_priorities("read:idle,write:best-effort/3"))
    for read_pct, number in ((100.0, 3 << 13), (0.0, 2 << 13 | 3)):
        path = filled_file(tmp_path / f"{read_pct}")
        turned = knobs_of(2, read_pct=read_pct)
        with (
            opened(path, size_bytes=1 << 20, writable=True) as targets,
            running("threads", targets, turned, priorities=rules) as engine,
        ):
            eventually(partial(measuring, engine), "the epoch")
            found = {_io_priority(thread) for thread in Path("/proc/self/task").iterdir() if _is_worker(thread)}
            assert number in found


def _is_worker(thread: Path) -> bool:
    return (thread / "comm").read_text().startswith("load") and "clock" not in (thread / "comm").read_text()


def _io_priority(thread: Path) -> int:
    """ioprio_get(2), which the C library has no function for."""
    call = {"x86_64": 252, "aarch64": 31}[os.uname().machine]
    return int(ctypes.CDLL(None, use_errno=True).syscall(call, 1, int(thread.name)))
