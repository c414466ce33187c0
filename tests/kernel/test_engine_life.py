"""Beginning and end of loads: nothing is left behind, however they end."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from engine import _native
from engine.backend.protocol import LoadSettings
from engine.job.spec import Knobs
from tests import needs
from tests.kernel.backends import (
    BACKENDS,
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

MIB = 1 << 20
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _load_threads() -> int:
    names = []
    for task in Path("/proc/self/task").iterdir():
        try:
            names.append((task / "comm").read_text())
        except (FileNotFoundError, ProcessLookupError):
            continue
    names += [thread.name for thread in threading.enumerate()]
    return sum(name.startswith(("load", "lunscope-aio")) for name in names)


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


@pytest.mark.parametrize("backend", BACKENDS)
def test_loads_leave_no_descriptors_threads_or_memory(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")

    def once() -> None:
        with (
            opened(path, size_bytes=MIB, writable=True) as targets,
            running(backend, targets, knobs_of(16, 65536, read_pct=50.0, threads=2)) as engine,
        ):
            eventually(lambda: ios(engine) > 50, "I/Os")

    for _ in range(5):
        once()
    gc.collect()
    descriptors, resident = _descriptors(), _resident_bytes()
    for _ in range(30):
        once()
    gc.collect()
    # The kernel closes those of a ring a moment after its load has ended.
    eventually(lambda: _descriptors() <= descriptors, "no more descriptors than before")
    eventually(lambda: _load_threads() == 0, "all threads to leave")
    # 30 loads of 2 MiB of buffers each would show.
    assert _resident_bytes() - resident < 16 * MIB


@pytest.mark.parametrize("backend", BACKENDS)
def test_thousands_of_turns_take_no_memory_to_speak_of(backend: str, tmp_path: Path) -> None:
    paths = [filled_file(tmp_path / f"data{number}") for number in range(4)]
    with opened(*paths, size_bytes=MIB) as targets, running(backend, targets, knobs_of(2, stripe_width=4)) as engine:
        for number in range(200):
            engine.apply(knobs_of(1 + number % 4, stripe_width=4))
        resident = _resident_bytes()
        for number in range(2000):
            engine.apply(knobs_of(1 + number % 4, stripe_width=4))
        assert _resident_bytes() - resident < 16 * MIB
        assert len(engine.epochs()) == 2201


@pytest.mark.parametrize(("backend", "depth"), [("uring", 32), ("threads", 15)])
def test_memory_stays_small_with_many_targets(backend: str, depth: int, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    gc.collect()
    resident = _resident_bytes()
    with opened(path, size_bytes=MIB) as (target,):
        targets = [OpenFile(target.fd, f"data {number}", MIB) for number in range(64)]
        with running(backend, targets, knobs_of(depth, stripe_width=64, threads=4)) as engine:
            eventually(lambda: measuring(engine) and bool((engine.counters()[:, 0] > 100).all()), "I/Os on all")
            buffers = 64 * depth * 4096
            assert _resident_bytes() - resident - buffers < 64 * MIB


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_load_ends_after_its_runtime(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, size_bytes=MIB) as targets:
        engine = make_engine(backend, targets, knobs_of(4), runtime_s=0.4)
        assert not engine.running
        engine.start()
        assert engine.running
        eventually(lambda: not engine.running, "the end")
        assert engine.stop()
        done = ios(engine)
    (epoch,) = engine.epochs()
    assert epoch.start_ns is not None
    assert epoch.end_ns is not None
    assert epoch.end_ns - epoch.turned_ns >= 0.4e9
    assert engine.fault == ""
    assert ios(engine) == done
    assert engine.stop()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_load_may_end_before_it_began(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, size_bytes=MIB) as targets:
        engine = make_engine(backend, targets, knobs_of(4))
        assert engine.stop()
        assert ios(engine) == 0
        assert engine.epochs() == []
        with pytest.raises(ValueError, match="before"):
            engine.start()
        dropped = make_engine(backend, targets, knobs_of(4))
        dropped.start()
        del dropped
    eventually(lambda: _load_threads() == 0, "all threads to leave")


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_descriptor_may_be_closed_once_the_target_is_made(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, size_bytes=MIB) as targets:
        engine = make_engine(backend, targets, knobs_of(4))
    engine.start()
    eventually(lambda: ios(engine) > 100, "I/Os")
    assert engine.stop()
    assert engine.errors() == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_python_runs_on_while_a_load_is_stopped_and_read(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, size_bytes=MIB) as targets, running(backend, targets, knobs_of(8, threads=2)) as engine:
        done = threading.Event()

        def read() -> None:
            while not done.is_set():
                engine.counters()
                engine.cells()
                engine.epochs()[-1].counts.sum()

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for number in range(100):
            engine.apply(knobs_of(1 + number % 8))
        done.set()
        for reader in readers:
            reader.join()
    measured = sum(int(epoch.counts[:, :, 0].sum()) + epoch.transient_ios for epoch in engine.epochs())
    assert measured == ios(engine)


def test_times_are_those_of_the_monotonic_clock(tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    before = time.monotonic_ns()
    with opened(path, size_bytes=MIB) as targets, running("threads", targets, Knobs()) as engine:
        eventually(lambda: measuring(engine), "measuring")
    (epoch,) = engine.epochs()
    assert epoch.start_ns is not None
    assert epoch.end_ns is not None
    assert before < epoch.turned_ns < epoch.start_ns < epoch.end_ns < time.monotonic_ns()


def test_constructor_arguments_are_checked(tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, size_bytes=MIB) as (file,):
        target = _native.LoadTarget(file.fd, "data", MIB, 512, writable=False)
        with pytest.raises(ValueError, match="targets"):
            _native.LoadEngine([], Knobs(), LoadSettings(backend="threads"))
        with pytest.raises(ValueError, match="threads 0"):
            _native.LoadEngine([target], Knobs(threads=0), LoadSettings(backend="uring"))
        with pytest.raises(ValueError, match="stripe_unit_bytes"):
            _native.LoadEngine([target], Knobs(), LoadSettings(backend="threads", stripe_unit_bytes=0))
        with pytest.raises(ValueError, match="runtime_s"):
            _native.LoadEngine([target], Knobs(), LoadSettings(backend="threads", runtime_s=-1.0))
        with pytest.raises(ValueError, match="size_bytes"):
            _native.LoadTarget(file.fd, "data", 0, 512, writable=False)
        with pytest.raises(OSError, match="Bad file descriptor"):
            _native.LoadTarget(9999, "data", MIB, 512, writable=False)


@needs.io_uring
@pytest.mark.parametrize("backend", ["uring", "threads"])
def test_cpu_time_includes_what_the_kernel_does_in_other_threads(backend: str, tmp_path: Path) -> None:
    def thread_cpu_ns() -> int:
        """CPU time of the load's threads by the scheduler's own books."""
        spent = 0
        for task in Path("/proc/self/task").iterdir():
            if (task / "comm").read_text().startswith(("load", "iou-wrk")):
                spent += int((task / "schedstat").read_text().split()[0])
        return spent

    path = filled_file(tmp_path / "data")
    with (
        opened(path, size_bytes=MIB, writable=True, direct=False) as targets,
        running(backend, targets, knobs_of(4, 65536, read_pct=0.0)) as engine,
    ):
        eventually(lambda: thread_cpu_ns() > 300_000_000, "0.3 s of CPU")
        before_ns, counted_ns, after_ns = thread_cpu_ns(), engine.cpu_ns(), thread_cpu_ns()
    assert 0.95 * before_ns < counted_ns < 1.05 * after_ns


@needs.io_uring
def test_a_load_runs_with_little_locked_memory(tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    script = """
import os, resource, sys, time
sys.path[:0] = sys.argv[2:]
import numpy
from engine import _native
from engine.job.spec import BlockShare, Knobs
from engine.backend.protocol import LoadSettings
resource.setrlimit(resource.RLIMIT_MEMLOCK, (1 << 20, 1 << 20))
fd = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
target = _native.LoadTarget(fd, "data", 1 << 20, 512, writable=False)
knobs = Knobs(queue_depth=64, blocks=(BlockShare(65536),))
engine = _native.LoadEngine([target], knobs, LoadSettings(backend="uring"))
engine.start()
while not engine.counters()[0, 0] > 100:
    time.sleep(0.01)
assert engine.stop() and not engine.errors()
print(*engine.features)
"""
    command = [sys.executable, "-c", script, str(path), *sys.path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "registered_files" in done.stdout
    assert "registered_buffers" not in done.stdout
