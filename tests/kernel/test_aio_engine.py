"""The asyncio engine on real files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.aio import AioEngine, AioTarget
from engine.job.spec import BlockShare, Knobs

SIZE = 8 << 20
DEADLINE_S = 20.0


def wait_until(happened: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not happened():
        assert time.monotonic() < deadline_s, "it never happened"
        time.sleep(0.005)


@pytest.fixture
def targets(tmp_path: Path) -> Iterator[list[AioTarget]]:
    made = []
    for index in range(3):
        path = tmp_path / f"target{index}"
        path.write_bytes(os.urandom(SIZE))
        made.append(AioTarget(os.open(path, os.O_RDWR), str(path), SIZE, 512, writable=True))
    yield made
    for target in made:
        os.close(target.fd)


@pytest.fixture
def run(targets: list[AioTarget]) -> Iterator[Callable[..., AioEngine]]:
    started: list[AioEngine] = []

    def start(knobs: Knobs, **settings: object) -> AioEngine:
        engine = AioEngine(targets, knobs, **settings)  # type: ignore[arg-type]
        started.append(engine)
        engine.start()
        return engine

    yield start
    for engine in started:
        assert engine.stop()
        assert engine.fault == ""


def ios(engine: AioEngine) -> NDArray[np.uint64]:
    counters = engine.counters()
    return np.asarray(counters[:, 0] + counters[:, 4])


def settled(engine: AioEngine, least_ios: int = 50) -> bool:
    return int(engine.epochs()[-1].counts[:, :, 0].sum()) >= least_ios


def test_every_io_is_in_one_epoch_or_transient(run: Callable[..., AioEngine]) -> None:
    engine = run(Knobs(queue_depth=4))
    wait_until(lambda: settled(engine))
    for number, knobs in enumerate(
        (
            Knobs(queue_depth=16, stripe_width=3),
            Knobs(queue_depth=2, stripe_width=2, read_pct=50, blocks=(BlockShare(4096, 50.0), BlockShare(16384, 50.0))),
            Knobs(queue_depth=8, read_pct=0),
        ),
        start=1,
    ):
        assert engine.apply(knobs) == number
        wait_until(lambda: settled(engine))
    assert engine.stop()
    epochs = engine.epochs()
    assert [epoch.index for epoch in epochs] == [0, 1, 2, 3]
    booked = sum(int(epoch.counts[:, :, 0].sum()) + epoch.transient_ios for epoch in epochs)
    assert booked == int(ios(engine).sum())
    for epoch in epochs:
        assert epoch.start_ns is not None
        assert epoch.start_ns - epoch.turned_ns >= 100_000_000
        assert int(epoch.cells[3].sum()) == int(epoch.counts[:, :, 0].sum())
        assert not epoch.counts[epoch.knobs.stripe_width :].any()
    assert not epochs[0].counts[:, 1].any()
    assert not epochs[3].counts[:, 0].any()


def test_the_queue_depth_is_kept_on_every_active_target_and_never_exceeded(run: Callable[..., AioEngine]) -> None:
    engine = run(Knobs(queue_depth=6, stripe_width=2))
    for depth, width in ((6, 2), (12, 3), (3, 1)):
        knobs = Knobs(queue_depth=depth, stripe_width=width)
        engine.apply(knobs)
        wait_until(lambda: settled(engine))
        expected, most = [depth] * width + [0] * (3 - width), np.zeros(3, np.uint64)

        def is_kept(most: NDArray[np.uint64] = most, expected: list[int] = expected) -> bool:
            for _ in range(200):
                np.maximum(most, engine.counters()[:, 9], out=most)
            assert (most <= expected).all()
            return bool((most == expected).all())

        wait_until(is_kept)


def test_histogram_cells_between_two_calls_add_up_to_all_ios(run: Callable[..., AioEngine]) -> None:
    engine = run(Knobs(queue_depth=4, read_pct=50))
    seen = 0
    for _ in range(3):
        before = int(ios(engine).sum())
        wait_until(lambda before=before: int(ios(engine).sum()) > before)  # type: ignore[misc]
        seen += int(engine.cells()[3].sum())
    assert engine.stop()
    seen += int(engine.cells()[3].sum())
    assert seen == int(ios(engine).sum())
    assert len(engine.cells()[3]) == 0


def test_the_rate_is_a_limit_over_all_targets(run: Callable[..., AioEngine]) -> None:
    engine = run(Knobs(queue_depth=8, stripe_width=3, rate_iops=200.0))
    wait_until(lambda: settled(engine, 40))
    engine.stop()
    epoch = engine.epochs()[0]
    assert epoch.start_ns is not None
    assert epoch.end_ns is not None
    assert int(epoch.counts[:, :, 0].sum()) <= 200 * (epoch.end_ns - epoch.start_ns) / 1e9 + 24


def test_writes_change_only_the_range_given(targets: list[AioTarget]) -> None:
    before = Path(targets[0].name).read_bytes()
    part = AioTarget(targets[0].fd, "part", 65536, 512, writable=True)
    engine = AioEngine([part], Knobs(queue_depth=4, read_pct=0), sequential=True)
    engine.start()
    wait_until(lambda: int(ios(engine).sum()) >= 40)
    assert engine.stop()
    after = Path(targets[0].name).read_bytes()
    assert all(before[at : at + 4096] != after[at : at + 4096] for at in range(0, 65536, 4096))
    assert before[65536:] == after[65536:]


def test_a_target_that_shrinks_fails_is_probed_and_recovers(
    run: Callable[..., AioEngine], targets: list[AioTarget]
) -> None:
    engine = run(Knobs(queue_depth=4, stripe_width=2))
    wait_until(lambda: settled(engine))
    os.truncate(targets[0].name, 0)
    wait_until(lambda: engine.counters()[:, 12].tolist() == [1, 0, 0])
    errors, others = int(engine.counters()[0, 8]), int(ios(engine)[1])
    wait_until(lambda: int(ios(engine)[1]) > others + 500)
    assert int(engine.counters()[0, 8]) - errors < 100, "a failing target is only probed"
    target, direction, errno, _, count = engine.errors()[0]
    assert (target, direction, errno) == (0, "read", 0)
    assert count >= 8
    os.truncate(targets[0].name, SIZE)
    wait_until(lambda: engine.counters()[0, 12] == 0)
    assert engine.running


def test_the_runtime_ends_the_load(run: Callable[..., AioEngine]) -> None:
    engine = run(Knobs(queue_depth=4), runtime_s=0.3)
    assert engine.running
    wait_until(lambda: not engine.running)
    assert engine.stop()
    assert engine.stop(), "stopping twice is stopping once"
    epoch = engine.epochs()[0]
    assert epoch.end_ns is not None
    assert (epoch.end_ns - epoch.turned_ns) / 1e9 >= 0.3
    assert engine.cpu_ns() > 0


def test_direct_io_reads_through_aligned_buffers(tmp_path: Path) -> None:
    path = tmp_path / "direct"
    path.write_bytes(os.urandom(1 << 20))
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError:
        pytest.skip(f"needs O_DIRECT: the filesystem of {tmp_path} has none")
    engine = AioEngine([AioTarget(fd, "direct", 1 << 20, 4096, writable=False)], Knobs(queue_depth=4))
    engine.start()
    wait_until(lambda: int(ios(engine).sum()) > 20)
    assert engine.stop()
    os.close(fd)
    assert engine.errors() == []


def test_the_engine_keeps_its_own_descriptors(targets: list[AioTarget]) -> None:
    fd = os.dup(targets[0].fd)
    engine = AioEngine([AioTarget(fd, "one", SIZE, 512, writable=False)], Knobs())
    engine.start()
    os.close(fd)
    before = int(ios(engine).sum())
    wait_until(lambda: int(ios(engine).sum()) > before + 20)
    assert engine.stop()
    assert engine.errors() == []


LEFT_RUNNING = """
import os, sys
from engine.aio import AioEngine, AioTarget
from engine.job.spec import Knobs

target = AioTarget(os.open(sys.argv[1], os.O_RDONLY), "target", os.stat(sys.argv[1]).st_size, 512, writable=False)
engine = AioEngine([target], Knobs(queue_depth=8))
engine.start()
while not engine.counters()[:, 0].sum():
    pass
"""


def test_an_interpreter_that_exits_amid_a_load_ends_in_silence(targets: list[AioTarget]) -> None:
    command = [sys.executable, "-c", LEFT_RUNNING, targets[0].name]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
