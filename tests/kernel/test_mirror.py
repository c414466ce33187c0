"""Mirrors and fan-out on real devices: copies alike, reads by policy, logical I/Os and what each target held up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.job.spec import PathPolicy
from tests import needs
from tests.kernel.backends import (
    FAILING,
    IN_FLIGHT,
    QUEUE_DEPTH,
    READS,
    WRITES,
    empty_file,
    eventually,
    filled_file,
    ios,
    knobs_of,
    measuring,
    opened,
    running,
)
from tests.kernel.paths import BACKENDS, break_path, repair_path
from tests.kernel.throttle import slowed, throttle

MIB = 1 << 20
IOS, LATENCY, ERRORS = 0, 2, 5
MakeLoop = Callable[..., str]


@pytest.mark.parametrize("backend", BACKENDS)
def test_writes_go_to_every_copy_and_stripes_spread_over_columns(backend: str, tmp_path: Path) -> None:
    paths = [empty_file(tmp_path / f"data{number}", MIB) for number in range(4)]
    knobs = knobs_of(4, 65536, stripe_width=4, read_pct=0.0)
    with (
        opened(*paths, size_bytes=MIB, writable=True) as targets,
        running(backend, targets, knobs, sequential=True, stripe_unit_bytes=32768, copies=2) as engine,
    ):
        eventually(lambda: bool((engine.counters()[:, WRITES] >= 64).all()), "two rounds over every target")
    written = [path.read_bytes() for path in paths]
    offsets = [_places(content) for content in written]
    assert offsets[0] == offsets[1] == offsets[2] == offsets[3] == list(range(0, MIB, 512))
    (epoch,) = engine.epochs()
    logical, parts = epoch.logical_counts[0], epoch.counts.sum(axis=0)
    # Two columns of two copies each.
    assert abs(4 * int(logical[1, IOS]) - int(parts[1, IOS])) <= 4 * 16


def _places(content: bytes) -> list[int]:
    stamped = np.frombuffer(content, np.uint64).reshape(-1, 64)[:, 0]
    return [int(place) for place in stamped]


@pytest.mark.parametrize("backend", BACKENDS)
def test_reads_of_a_mirror_follow_the_policy_live(backend: str, tmp_path: Path) -> None:
    paths = [filled_file(tmp_path / f"data{number}") for number in range(2)]

    def reads() -> list[int]:
        """Read those of the copies, and of the mirror, all from one reading, since the load goes on."""
        eventually(lambda: measuring(engine) and int(engine.epochs()[-1].counts[:, 0, IOS].sum()) > 1000, "I/Os")
        epoch = engine.epochs()[-1]
        return [*map(int, epoch.counts[:, 0, IOS]), int(epoch.logical_counts[0, 0, IOS])]

    with (
        opened(*paths, size_bytes=MIB) as targets,
        running(backend, targets, knobs_of(4, stripe_width=2), copies=2) as engine,
    ):
        first, second, _ = reads()
        assert first / second == pytest.approx(1, abs=0.1)
        engine.apply(knobs_of(4, stripe_width=2, policy=PathPolicy.PREFERRED_PATH))
        first, second, of_mirror = reads()
        assert second == 0
        assert of_mirror == pytest.approx(first, rel=0.1)


@needs.loop
@pytest.mark.parametrize("backend", BACKENDS)
def test_reads_go_on_from_the_other_copy_when_one_fails(backend: str, make_loop: MakeLoop, tmp_path: Path) -> None:
    devices = [make_loop(8 * MIB, folder=tmp_path) for _ in range(2)]
    with (
        opened(*devices, size_bytes=8 * MIB) as targets,
        running(backend, targets, knobs_of(4, stripe_width=2), copies=2) as engine,
    ):
        eventually(lambda: measuring(engine) and ios(engine) > 200, "I/Os")
        break_path(devices[1])
        eventually(lambda: int(engine.counters()[1, FAILING]) == 1, "the copy to fail")
        done = int(engine.counters()[0, READS])
        eventually(lambda: int(engine.counters()[0, READS]) > done + 500, "reads from the other")
        repair_path(devices[1])
        eventually(lambda: int(engine.counters()[1, FAILING]) == 0, "the copy to answer")
        again = int(engine.counters()[1, READS])
        eventually(lambda: int(engine.counters()[1, READS]) > again + 100, "reads from it")
    (epoch,) = engine.epochs()
    assert int(epoch.counts[1, 0, ERRORS]) >= 16
    assert int(epoch.logical_counts[0, 0, ERRORS]) == 0, "each of them was read from the other copy"


@pytest.mark.alone
@throttle
@needs.loop
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_slowest_target_is_named_by_what_it_held_up(backend: str, make_loop: MakeLoop, tmp_path: Path) -> None:
    devices = [make_loop(8 * MIB, folder=tmp_path) for _ in range(3)]
    with (
        slowed(devices[1], 200),
        opened(*devices, size_bytes=8 * MIB) as targets,
        running(backend, targets, knobs_of(2, 3 * 65536, stripe_width=3)) as engine,
    ):
        eventually(lambda: measuring(engine) and int(engine.epochs()[0].logical_counts[0, 0, IOS]) > 100, "I/Os")
    (epoch,) = engine.epochs()
    logical, parts = epoch.logical_counts[0, 0], epoch.counts[:, 0]
    last, waited_ns = epoch.delays[:, 0], epoch.delays[:, 1]
    assert waited_ns.argmax() == 1
    assert int(last.sum()) == int(logical[IOS])
    assert int(waited_ns[1]) > 0.5 * int(logical[LATENCY])
    means = parts[:, LATENCY] / parts[:, IOS]
    assert logical[LATENCY] / logical[IOS] > 0.9 * means[1] > 5 * means[0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_depth_for_all_targets_is_shared_out(backend: str, tmp_path: Path) -> None:
    paths = [filled_file(tmp_path / f"data{number}") for number in range(3)]
    with (
        opened(*paths, size_bytes=MIB) as targets,
        running(backend, targets, knobs_of(7, stripe_width=3), total_queue_depth=True) as engine,
    ):
        eventually(lambda: bool((engine.counters()[:, READS] > 100).all()), "I/Os on all")
        assert engine.counters()[:, QUEUE_DEPTH].tolist() == [3, 2, 2]
        assert (engine.counters()[:, IN_FLIGHT] <= [3, 2, 2]).all()
        engine.apply(knobs_of(8, stripe_width=2))
        assert engine.counters()[:, QUEUE_DEPTH].tolist() == [4, 4, 0]
        engine.apply(knobs_of(2, stripe_width=3))
        assert engine.counters()[:, QUEUE_DEPTH].tolist() == [1, 1, 0]


@pytest.mark.alone
@pytest.mark.parametrize("backend", BACKENDS)
def test_64_targets_keep_their_depth(backend: str, tmp_path: Path) -> None:
    """By Little's law the sum of latencies over the time is the mean number outstanding.

    Threads that block wait for a processor between two I/Os, on a busy machine for as long as an I/O takes.
    """
    depth, reads = (32, 3000) if backend == "uring" else (15, 1000)
    paths = [filled_file(tmp_path / f"data{number}", 65536) for number in range(64)]
    with (
        opened(*paths, size_bytes=65536) as targets,
        running(backend, targets, knobs_of(depth, stripe_width=64, threads=2)) as engine,
    ):
        eventually(lambda: measuring(engine) and bool((engine.counters()[:, READS] > reads).all()), "I/Os on all")
        assert (engine.counters()[:, IN_FLIGHT] <= depth).all()
    (epoch,) = engine.epochs()
    assert epoch.start_ns is not None
    assert epoch.end_ns is not None
    outstanding = epoch.counts[:, 0, LATENCY] / (epoch.end_ns - epoch.start_ns)
    if backend == "uring":
        assert depth - 1 <= outstanding.min() <= outstanding.max() <= depth + 1, outstanding
    else:
        # What a thousand threads had outstanding at the end takes long to come back: its whole latency counts.
        assert outstanding.mean() >= depth / 2, outstanding
