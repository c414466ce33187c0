"""Knobs that turn while the load runs: in force at once, every epoch apart, on stalled devices too."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from engine.backend.protocol import EpochStats
from engine.job.spec import BlockShare, Flush, Mode
from engine.replacing import replace
from tests import needs
from tests.kernel.backends import (
    BACKENDS,
    EPOCH,
    IN_FLIGHT,
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


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_knob_turns_while_running_and_each_turn_is_an_epoch(backend: str, tmp_path: Path) -> None:
    paths = [filled_file(tmp_path / f"data{number}") for number in range(2)]
    start = knobs_of(4, threads=2)
    turns = [
        replace(start, queue_depth=32),
        replace(start, queue_depth=1),
        replace(start, stripe_width=2),
        replace(start, blocks=(BlockShare(65536),)),
        replace(start, blocks=(BlockShare(4096, 50.0), BlockShare(8192, 50.0))),
        replace(start, read_pct=0.0),
        replace(start, read_pct=50.0, blocks=(BlockShare(131072),), queue_depth=16),
        replace(start, rate_iops=2000.0),
        replace(start, threads=5),
        replace(start, threads=1),
        replace(start, mode=Mode.BUFFERED),
        replace(start, mode=Mode.DSYNC, read_pct=50.0),
        replace(start, mode=Mode.SYNC, read_pct=50.0),
        replace(start, write_blocks=(BlockShare(16384),), read_pct=0.0, fsync_every=10),
        replace(start, read_pct=0.0, fsync_every=10, flush=Flush.FDATASYNC),
        start,
    ]
    if backend == "aio":
        turns = [turn for turn in turns if turn.mode.is_direct and turn.fsync_every is None]
    with (
        opened(*paths, size_bytes=MIB, writable=True) as targets,
        running(backend, targets, start) as engine,
    ):
        for number, knobs in enumerate(turns, start=1):
            assert engine.apply(knobs) == number
            eventually(lambda: measuring(engine) and _measured(engine.epochs()[-1]) > 100, f"I/Os with {knobs}")
            assert (engine.counters()[:, IN_FLIGHT] <= knobs.queue_depth).all()
            assert (engine.counters()[:, EPOCH] == number).all()
    epochs: Sequence[EpochStats] = engine.epochs()
    assert [epoch.knobs for epoch in epochs] == [start, *turns]
    assert [epoch.index for epoch in epochs] == list(range(len(turns) + 1))
    assert epochs[3].counts[1, 0, 0] > 0
    assert epochs[2].counts[1, 0, 0] == 0
    assert epochs[4].counts[0, 0, 1] == epochs[4].counts[0, 0, 0] * 65536
    assert epochs[6].counts[0, 0, 0] == 0
    assert epochs[6].counts[0, 1, 0] > 0
    assert sum(_measured(epoch) + epoch.transient_ios for epoch in epochs) == ios(engine)
    for epoch, following in pairwise(epochs):
        assert epoch.end_ns == following.turned_ns
        assert epoch.start_ns is None or epoch.turned_ns < epoch.start_ns < following.turned_ns
    cells = engine.cells()[3].sum()
    assert cells == ios(engine)


def _measured(epoch: EpochStats) -> int:
    return int(epoch.counts[:, :, 0].sum())


@needs.loop
@throttle
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_stalled_device_holds_exactly_the_depth_and_knobs_take_effect(backend: str, make_loop: MakeLoop) -> None:
    device = make_loop(8 * MIB)
    with opened(device, size_bytes=8 * MIB) as targets:
        engine = make_engine(backend, targets, knobs_of(8, threads=2))
        with stalled(device):
            engine.start()

            def in_flight() -> int:
                return int(engine.counters()[0, IN_FLIGHT])

            def holds(depth: int) -> bool:
                return in_flight() == depth

            eventually(lambda: in_flight() == 8, "8 outstanding")
            for depth in (16, 40, 41, 200):
                engine.apply(knobs_of(depth, threads=2))
                eventually(partial(holds, depth), f"{depth} outstanding")
            engine.apply(knobs_of(3, threads=2))
            done = ios(engine)
            eventually(lambda: ios(engine) > done, "one I/O per second")
            eventually(lambda: in_flight() < 200, "what came back not to be replaced")
            assert engine.epochs()[-1].start_ns is None
        eventually(lambda: in_flight() <= 3, "the surplus to drain")
        eventually(lambda: measuring(engine), "the last epoch")
        assert engine.stop()
        assert in_flight() == 0
        assert sum(_measured(epoch) + epoch.transient_ios for epoch in engine.epochs()) == ios(engine)


@needs.loop
@throttle
@pytest.mark.parametrize("backend", BACKENDS)
def test_stop_returns_from_a_stalled_device(backend: str, make_loop: MakeLoop) -> None:
    device = make_loop(8 * MIB)
    with opened(device, size_bytes=8 * MIB) as targets:
        engine = make_engine(backend, targets, knobs_of(8, threads=2))
        with stalled(device):
            engine.start()
            eventually(lambda: int(engine.counters()[0, IN_FLIGHT]) == 8, "8 outstanding")
            began = time.monotonic()
            assert not engine.stop(timeout_s=0.3)
            assert time.monotonic() - began < 3
            assert not engine.running
            # Nobody waits for it again.
            began = time.monotonic()
            assert not engine.stop(timeout_s=0.0)
            assert time.monotonic() - began < 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_knobs_turned_before_the_start_are_those_of_epoch_0(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, size_bytes=MIB) as targets:
        engine = make_engine(backend, targets, knobs_of(2))
        assert engine.epochs() == []
        assert engine.apply(knobs_of(5)) == 0
        engine.start()
        eventually(lambda: ios(engine) > 10, "I/Os")
        assert engine.apply(knobs_of(6)) == 1
        assert engine.stop()
    assert [epoch.knobs.queue_depth for epoch in engine.epochs()] == [5, 6]
    with pytest.raises(ValueError, match="ended"):
        engine.apply(knobs_of(3))
