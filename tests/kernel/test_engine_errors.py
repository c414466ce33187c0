"""What goes wrong under the load: counted, remembered, and no reason for the rest to stop."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import needs
from tests.kernel.backends import (
    BACKENDS,
    ERRORS,
    FAILING,
    OUTSTANDING_NS,
    READS,
    WRITES,
    OpenFile,
    empty_file,
    eventually,
    filled_file,
    ios,
    knobs_of,
    measuring,
    opened,
    running,
)

MIB = 1 << 20
MakeLoop = Callable[..., str]


@needs.loop
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_device_that_fails_is_probed_while_the_others_go_on(
    backend: str, make_loop: MakeLoop, tmp_path: Path
) -> None:
    bad, good = make_loop(8 * MIB, folder=tmp_path), make_loop(8 * MIB, folder=tmp_path)
    backing = Path(Path("/sys/block", Path(bad).name, "loop/backing_file").read_text().strip())
    with (
        opened(bad, good, size_bytes=8 * MIB) as targets,
        running(backend, targets, knobs_of(4, stripe_width=2, threads=2)) as engine,
    ):
        eventually(lambda: measuring(engine) and bool((engine.counters()[:, READS] > 50).all()), "I/Os on both")
        os.truncate(backing, 0)
        eventually(lambda: engine.counters()[0, FAILING] == 1, "the first target to fail")
        failed_s = time.monotonic()
        errors, done = int(engine.counters()[0, ERRORS]), int(engine.counters()[1, READS])
        eventually(lambda: int(engine.counters()[0, ERRORS]) >= errors + 3, "probes")
        eventually(lambda: int(engine.counters()[1, READS]) > done + 100, "the other to go on")
        assert engine.counters()[:, FAILING].tolist() == [1, 0]
        # The rest of what was outstanding fails, then there is one probe every 100 ms.
        more = int(engine.counters()[0, ERRORS]) - errors
        assert more <= 3 + 1 + (time.monotonic() - failed_s) * 10
        ((target, direction, code, offset, count),) = engine.errors()
        assert (target, direction, code) == (0, "read", errno.EIO)
        assert offset % 4096 == 0
        assert count == int(engine.counters()[0, ERRORS])
        assert engine.running
        os.truncate(backing, 8 * MIB)
        eventually(lambda: engine.counters()[0, FAILING] == 0, "the first target to recover")
        again = int(engine.counters()[0, READS])
        eventually(lambda: int(engine.counters()[0, READS]) > again + 100, "I/Os on it")
    counts = sum(epoch.counts[0, 0, 5] for epoch in engine.epochs())
    assert 0 < counts <= engine.counters()[0, ERRORS]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_full_disk_is_counted_and_reading_goes_on(backend: str, tmp_path: Path) -> None:
    full = os.open("/dev/full", os.O_RDWR)
    good = os.open(empty_file(tmp_path / "data"), os.O_RDWR)
    try:
        targets = [OpenFile(full, "/dev/full", MIB, 1, True), OpenFile(good, "data", MIB, 1, True)]
        with running(backend, targets, knobs_of(2, stripe_width=2, read_pct=0.0)) as engine:
            eventually(lambda: engine.counters()[0, FAILING] == 1, "the full target to fail")
            eventually(lambda: engine.counters()[1, WRITES] > 1000, "writes on the other")
        assert engine.counters()[0, WRITES] == 0
        assert engine.errors()[0][:3] == (0, "write", errno.ENOSPC)
    finally:
        os.close(full)
        os.close(good)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_short_transfer_is_an_error(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data", 6000)
    with opened(path, size_bytes=8192, direct=False) as targets, running(backend, targets, knobs_of(1)) as engine:
        eventually(lambda: ios(engine) > 10 and engine.counters()[0, ERRORS] > 10, "both outcomes")
    assert engine.counters()[0, OUTSTANDING_NS] > 0, "a failed one was outstanding, too, and is in no latency"
    ((target, direction, code, offset, count),) = engine.errors()
    assert (target, direction, code, offset) == (0, "read", 0, 4096)
    assert count == engine.counters()[0, ERRORS]
    assert engine.counters()[0, READS] * 4096 == engine.counters()[0, 1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_load_never_writes_to_a_target_that_is_only_read(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    before = path.read_bytes()
    with opened(path, size_bytes=MIB) as targets, running(backend, targets, knobs_of(4)) as engine:
        with pytest.raises(ValueError, match="not open for writing"):
            engine.apply(knobs_of(4, read_pct=99.9))
        eventually(lambda: ios(engine) > 500, "I/Os")
    assert path.read_bytes() == before
    assert engine.counters()[0, WRITES] == 0


@needs.loop
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_failing_member_does_not_stop_a_stripe(backend: str, make_loop: MakeLoop, tmp_path: Path) -> None:
    devices = [make_loop(4 * MIB, folder=tmp_path) for _ in range(3)]
    backing = Path(Path("/sys/block", Path(devices[1]).name, "loop/backing_file").read_text().strip())
    knobs = knobs_of(2, 3 * 65536, stripe_width=3)
    with (
        opened(*devices, size_bytes=4 * MIB) as targets,
        running(backend, targets, knobs, stripe_unit_bytes=65536) as engine,
    ):
        eventually(lambda: bool((engine.counters()[:, READS] > 20).all()), "I/Os on all")
        os.truncate(backing, 0)
        eventually(lambda: engine.counters()[1, FAILING] == 1, "one member to fail")
        done = engine.counters()[:, READS]
        eventually(lambda: bool((engine.counters()[[0, 2], READS] > done[[0, 2]] + 50).all()), "the others to go on")
