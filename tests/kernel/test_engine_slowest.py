"""The slowest I/Os of the load: those that raise the peak, with when and where they were submitted."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from tests.kernel.backends import BACKENDS, READ_PEAK, eventually, filled_file, ios, knobs_of, opened, running

MIB = 1 << 20
MOST = 16
TARGET, DIRECTION, OFFSET, BYTES, ISSUED, LATENCY = range(6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_slowest_ios_are_reported_once_with_their_place_and_time(backend: str, tmp_path: Path) -> None:
    paths = [filled_file(tmp_path / name) for name in ("a", "b")]
    began_ns = time.monotonic_ns()
    with (
        opened(*paths, size_bytes=MIB) as targets,
        running(backend, targets, knobs_of(4, stripe_width=2)) as engine,
    ):
        eventually(lambda: ios(engine) > 500, "500 I/Os")
        first = engine.slowest()
        taken = ios(engine)
        eventually(lambda: ios(engine) > taken + 500, "500 more I/Os")
    now_ns = time.monotonic_ns()
    second, after = engine.slowest(), engine.slowest()
    for slowest in (first, second):
        assert slowest.shape == (MOST, 6)
        assert slowest.dtype == np.uint64
        assert (np.diff(slowest[:, LATENCY].astype(np.int64)) <= 0).all()
        assert set(slowest[:, TARGET].tolist()) <= {0, 1}
        assert (slowest[:, DIRECTION] == 0).all()
        assert (slowest[:, BYTES] == 4096).all()
        assert (slowest[:, OFFSET] % 4096 == 0).all()
        assert (slowest[:, OFFSET] < MIB).all()
        assert (slowest[:, ISSUED] >= began_ns).all()
        assert (slowest[:, ISSUED] + slowest[:, LATENCY] <= now_ns).all()
    assert after.shape == (0, 6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_slowest_is_the_peak(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, size_bytes=MIB) as targets, running(backend, targets, knobs_of(2)) as engine:
        eventually(lambda: engine.running, "a start")
    slowest = engine.slowest()
    peak = int(engine.counters()[0, READ_PEAK])
    assert int(slowest[0, LATENCY] if len(slowest) else 0) == peak
