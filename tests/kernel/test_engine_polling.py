"""A ring that stays awake for its completions, and one that moves no data at all."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests import needs
from tests.kernel.backends import (
    ERRORS,
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

pytestmark = needs.io_uring


def test_polling_counts_every_io_and_takes_turns(tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, size_bytes=MIB) as targets, running("uring", targets, knobs_of(1), poll=True) as engine:
        for depth in (8, 40, 2):
            eventually(lambda: measuring(engine) and ios(engine) > 100, "measured I/Os")
            engine.apply(knobs_of(depth))
        eventually(lambda: measuring(engine), "the last epoch")
    epochs = engine.epochs()
    assert [epoch.knobs.queue_depth for epoch in epochs] == [1, 8, 40, 2]
    measured = sum(int(epoch.counts[:, :, 0].sum()) + epoch.transient_ios for epoch in epochs)
    assert measured == ios(engine) == engine.cells()[3].sum()


def test_polling_sleeps_while_nothing_is_outstanding(tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    knobs = knobs_of(1, rate_iops=2.0)
    with opened(path, size_bytes=MIB) as targets, running("uring", targets, knobs, poll=True) as engine:
        began = time.monotonic()
        eventually(lambda: ios(engine) >= 2, "two I/Os")
        assert engine.cpu_ns() < (time.monotonic() - began) / 4 * 1e9


@needs.loop
@throttle
def test_polling_hears_of_turns_and_stops_on_a_stalled_device(make_loop: MakeLoop) -> None:
    device = make_loop(8 * MIB)
    with opened(device, size_bytes=8 * MIB) as targets:
        engine = make_engine("uring", targets, knobs_of(4), poll=True)
        with stalled(device):
            engine.start()
            eventually(lambda: int(engine.counters()[0, IN_FLIGHT]) == 4, "4 outstanding")
            engine.apply(knobs_of(9))
            eventually(lambda: int(engine.counters()[0, IN_FLIGHT]) == 9, "9 outstanding")
            began = time.monotonic()
            assert not engine.stop(timeout_s=0.3)
            assert time.monotonic() - began < 3
            assert not engine.running


def test_a_dry_run_moves_no_data_and_counts_all_the_same(tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with opened(path, size_bytes=MIB) as targets, running("uring", targets, knobs_of(32), dry=True) as engine:
        eventually(lambda: measuring(engine) and ios(engine) > 10_000, "measured no-ops")
    (row,) = engine.counters()
    assert int(row[1]) == 4096 * int(row[0])
    assert int(row[ERRORS]) == 0
