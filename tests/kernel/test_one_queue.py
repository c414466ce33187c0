"""A total queue depth below the number of targets: one queue over all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.backend.protocol import EpochStats
from engine.job.spec import Arrival
from tests.kernel.backends import (
    QUEUE_DEPTH,
    eventually,
    filled_file,
    knobs_of,
    make_engine,
    measuring,
    opened,
    running,
)
from tests.kernel.paths import BACKENDS, MIB

IOS, LATENCY, LONGEST = 0, 2, 4
TARGETS = 4


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [filled_file(tmp_path / f"data{number}") for number in range(TARGETS)]


def measured_ns(epoch: EpochStats) -> int:
    assert epoch.start_ns is not None
    assert epoch.end_ns is not None
    return epoch.end_ns - epoch.start_ns


def mean_outstanding(epoch: EpochStats) -> float:
    """Outstanding I/Os over the measured time by Little's law, without those that began before it."""
    latency_ns, longest_ns = int(epoch.counts[:, :, LATENCY].sum()), int(epoch.counts[:, :, LONGEST].max())
    return (latency_ns - epoch.knobs.queue_depth * longest_ns) / measured_ns(epoch)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_depth_is_of_all_targets_and_each_has_its_turn(backend: str, files: list[Path]) -> None:
    with (
        opened(*files, size_bytes=MIB) as targets,
        running(backend, targets, knobs_of(1, stripe_width=TARGETS), total_queue_depth=True) as engine,
    ):
        for depth in (1, 3, 8, 2):
            if depth > 1:
                engine.apply(knobs_of(depth, stripe_width=TARGETS))
            eventually(
                lambda: measuring(engine) and int(engine.epochs()[-1].counts[:, :, IOS].sum()) > 2000,
                f"I/Os at a depth of {depth}",
            )
            assert int(engine.counters()[:, QUEUE_DEPTH].sum()) == depth
    for epoch in engine.epochs():
        ios = epoch.counts[:, :, IOS].sum(axis=1)
        assert mean_outstanding(epoch) <= epoch.knobs.queue_depth
        assert ios.min() > 0
        if epoch.knobs.queue_depth == 1:
            # One I/O at a time, in turn.
            assert int(ios.max()) - int(ios.min()) <= 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_number_of_threads_is_turned_under_one_queue(backend: str, files: list[Path]) -> None:
    with (
        opened(*files, size_bytes=MIB) as targets,
        running(backend, targets, knobs_of(3, stripe_width=TARGETS), total_queue_depth=True) as engine,
    ):
        for threads in (2, 3, 1):
            engine.apply(knobs_of(3, stripe_width=TARGETS, threads=threads))
            eventually(
                lambda: measuring(engine) and bool((engine.epochs()[-1].counts[:, :, IOS].sum(axis=1) > 100).all()),
                f"I/Os of {threads} threads on every target",
            )
    assert all(mean_outstanding(epoch) <= 3 for epoch in engine.epochs()[1:])


@pytest.mark.parametrize("backend", BACKENDS)
def test_ios_over_several_targets_are_issued_part_by_part(backend: str, files: list[Path]) -> None:
    with (
        opened(*files, size_bytes=MIB, writable=True) as targets,
        running(
            backend,
            targets,
            knobs_of(2, TARGETS * 65536, stripe_width=TARGETS, read_pct=50),
            total_queue_depth=True,
        ) as engine,
    ):
        eventually(lambda: measuring(engine) and int(engine.epochs()[0].logical_counts[0, :, IOS].sum()) > 100, "I/Os")
    (epoch,) = engine.epochs()
    ios = epoch.counts[:, :, IOS].sum(axis=1).astype(np.int64)
    assert int(ios.max() - ios.min()) <= 2 * 16
    assert mean_outstanding(epoch) <= 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_rate_is_kept_by_one_queue(backend: str, files: list[Path]) -> None:
    with (
        opened(*files, size_bytes=MIB) as targets,
        running(backend, targets, knobs_of(2, stripe_width=TARGETS, rate_iops=400.0), total_queue_depth=True) as engine,
    ):
        eventually(lambda: measuring(engine) and int(engine.epochs()[0].counts[:, :, IOS].sum()) > 200, "I/Os")
    (epoch,) = engine.epochs()
    ios = epoch.counts[:, :, IOS].sum(axis=1).astype(np.int64)
    assert int(ios.max() - ios.min()) <= 40
    assert int(ios.sum()) * 1e9 / measured_ns(epoch) <= 400 * 1.5


@pytest.mark.parametrize("backend", BACKENDS)
def test_arrivals_need_a_slot_on_every_target(backend: str, files: list[Path]) -> None:
    knobs = knobs_of(2, stripe_width=TARGETS, rate_iops=100.0)
    with (
        opened(*files, size_bytes=MIB) as targets,
        pytest.raises(ValueError, match="one queue, which takes no arrivals"),
    ):
        make_engine(backend, targets, knobs, total_queue_depth=True, arrival=Arrival.POISSON.value)
