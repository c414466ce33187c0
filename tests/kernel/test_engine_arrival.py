"""The open loop on real storage: rates hold, no arrival is lost, latencies count from the arrival."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from engine.backend.protocol import EpochStats, LoadBackend
from engine.results.histogram import middles_ns
from engine.results.measured import BOTH, measure
from tests import needs
from tests.kernel.backends import (
    IN_FLIGHT,
    NATIVE,
    SKIPPED,
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

RATE = 2000.0
MIB = 1 << 20
MakeLoop = Callable[..., str]


def skipped(engine: LoadBackend) -> int:
    return int(engine.counters()[:, SKIPPED].sum())


def due(engine: LoadBackend, rate_iops: float) -> float:
    """Arrivals that a whole run of one rate must have had."""
    epochs = engine.epochs()
    assert epochs[-1].end_ns is not None
    return (epochs[-1].end_ns - epochs[0].turned_ns) / 1e9 * rate_iops


def long_enough(engine: LoadBackend, count: int) -> Callable[[], bool]:
    return lambda: measuring(engine) and int(engine.epochs()[-1].counts[:, :, 0].sum()) > count


@pytest.mark.parametrize("backend", NATIVE)
@pytest.mark.parametrize("arrival", ["constant", "poisson"])
def test_every_arrival_is_issued_or_counted_as_skipped(backend: str, arrival: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with (
        opened(path, size_bytes=MIB) as targets,
        running(backend, targets, knobs_of(16, rate_iops=RATE, threads=2), arrival=arrival) as engine,
    ):
        eventually(long_enough(engine, 1500), "1500 measured I/Os")
    expected = due(engine, RATE)
    # Constant arrivals are a count; those of Poisson scatter by the root of it.
    tolerance = max(0.005 * expected, 3) if arrival == "constant" else 5 * expected**0.5
    assert abs(ios(engine) + skipped(engine) - expected) <= tolerance


@pytest.mark.parametrize("backend", NATIVE)
def test_latency_counts_from_the_arrival_and_service_beside_it(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with (
        opened(path, size_bytes=MIB) as targets,
        running(backend, targets, knobs_of(4, rate_iops=RATE), arrival="poisson") as engine,
    ):
        eventually(long_enough(engine, 500), "500 measured I/Os")
    (epoch,) = engine.epochs()
    latency = measure(epoch, None, BOTH)
    assert latency.service is not None
    assert latency.service.counts.sum() == latency.ios
    assert latency.latency_sum_ns > latency.service.sum_ns > 0
    assert latency.largest_ns is not None
    assert latency.service.largest_ns is not None
    assert latency.largest_ns >= latency.service.largest_ns
    series, counts = engine.cells()[1], engine.cells()[3]
    assert not len(counts), "cells are handed out once"
    assert set(series.tolist()) <= {0, 2}


@pytest.mark.parametrize("backend", NATIVE)
def test_a_closed_loop_has_no_service_times_of_its_own(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, size_bytes=MIB) as targets, running(backend, targets, knobs_of(4)) as engine:
        eventually(long_enough(engine, 100), "100 measured I/Os")
    (epoch,) = engine.epochs()
    assert measure(epoch, None, BOTH).service is None
    assert not epoch.services.any()
    assert skipped(engine) == 0


@needs.loop
@throttle
@pytest.mark.parametrize("backend", NATIVE)
def test_a_stalled_device_loses_nothing_and_overload_is_counted(backend: str, make_loop: MakeLoop) -> None:
    device, rate_iops = make_loop(8 * MIB), 400.0
    with opened(device, size_bytes=8 * MIB) as targets:
        engine = make_engine(backend, targets, knobs_of(8, rate_iops=rate_iops), arrival="constant")
        with stalled(device):
            engine.start()
            eventually(lambda: int(engine.counters()[0, IN_FLIGHT]) == 8, "8 outstanding")
            eventually(lambda: skipped(engine) > 300, "arrivals to be skipped")
            assert int(engine.counters()[0, IN_FLIGHT]) <= 8
            assert ios(engine) < 100
        eventually(lambda: ios(engine) > 400, "arrivals to be served again")
        assert engine.stop()
    assert ios(engine) + skipped(engine) == pytest.approx(due(engine, rate_iops), rel=0.02)
    _, series, buckets, _ = engine.cells()
    assert middles_ns(buckets[series == 0]).max() > 1e9, "what waited for the stall must say so"


@pytest.mark.parametrize("backend", NATIVE)
def test_the_rate_turns_live_and_every_epoch_holds_its_own(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    rates = (500.0, 3000.0, 1000.0)
    with (
        opened(path, size_bytes=MIB) as targets,
        running(backend, targets, knobs_of(8, rate_iops=rates[0]), arrival="constant") as engine,
    ):
        for rate_iops in rates[1:]:
            eventually(long_enough(engine, 200), "200 measured I/Os")
            engine.apply(knobs_of(8, rate_iops=rate_iops))
        eventually(long_enough(engine, 200), "200 measured I/Os")
        with pytest.raises(ValueError, match="arrivals need a rate"):
            engine.apply(knobs_of(8))
    epochs: Sequence[EpochStats] = engine.epochs()
    expected = 0.0
    for epoch, rate_iops in zip(epochs, rates, strict=True):
        assert epoch.end_ns is not None
        expected += (epoch.end_ns - epoch.turned_ns) / 1e9 * rate_iops
    assert abs(ios(engine) + skipped(engine) - expected) <= 3 * len(rates)
    assert sum(_measured(epoch) + epoch.transient_ios for epoch in epochs) == ios(engine)


def _measured(epoch: EpochStats) -> int:
    return int(epoch.counts[:, :, 0].sum())


@pytest.mark.parametrize("backend", NATIVE)
def test_targets_get_equal_shares_and_a_stalled_one_spares_the_others(backend: str, tmp_path: Path) -> None:
    paths = [filled_file(tmp_path / name) for name in "abc"]
    with (
        opened(*paths, size_bytes=MIB) as targets,
        running(backend, targets, knobs_of(4, rate_iops=3000.0, stripe_width=3), arrival="constant") as engine,
    ):
        eventually(long_enough(engine, 1500), "1500 measured I/Os")
    counters = engine.counters()
    arrived = [int(row[0] + row[SKIPPED]) for row in counters]
    assert max(arrived) - min(arrived) <= 2, arrived


@pytest.mark.parametrize("backend", NATIVE)
def test_the_rate_counts_whole_ios_that_fan_out(backend: str, tmp_path: Path) -> None:
    paths = [filled_file(tmp_path / name) for name in "ab"]
    knobs = knobs_of(8, 131072, rate_iops=500.0, stripe_width=2)
    with (
        opened(*paths, size_bytes=MIB) as targets,
        running(backend, targets, knobs, arrival="constant") as engine,
    ):
        eventually(long_enough(engine, 400), "400 measured I/Os")
    parts, whole = ios(engine), due(engine, 500.0) - skipped(engine)
    # Each I/O has a part on each target; the last few may have been stopped on their way.
    assert abs(parts - 2 * whole) <= 2 * 8 + 4


@pytest.mark.parametrize("backend", NATIVE)
def test_a_stop_does_not_wait_for_the_next_arrival(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, size_bytes=MIB) as targets:
        engine = make_engine(backend, targets, knobs_of(2, rate_iops=0.01), arrival="poisson")
        engine.start()
        began = time.monotonic()
        assert engine.stop()
        assert time.monotonic() - began < 5
