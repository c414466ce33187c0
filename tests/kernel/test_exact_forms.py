"""The exact tier in the forms that older kernels need, forced on this one: each counts what is known to be done."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from collectors.derive.percentiles import bucket_midpoints_ns
from collectors.doctor import Status, exact_time
from collectors.exact.tracer import SCALE
from collectors.model import MISSING
from collectors.tables.block.schema import TRACE_SERIES
from engine import _native
from engine.job.spec import Knobs
from tests import needs
from tests.kernel.backends import READS, WRITES, OpenFile, eventually, running
from tests.kernel.tracing import (
    TYPES,
    grown,
    opened,
    queue_set,
    read_device,
    read_extents,
    row_of,
    sysfs_without_types,
)

pytestmark = [needs.loop, needs.tracer]

SIZE_BYTES = 64 << 20
THREADS = 16
ENOUGH = 2000
READS_OF_EACH = 200
LOST = ("table_full", "unseen", "stale", "healed")


@pytest.fixture
def without_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A root of sysfs without a description of types, with one that is named instead: of this kernel."""
    monkeypatch.setenv("LUNSCOPE_BTF", TYPES)
    return sysfs_without_types(tmp_path / "sys")


@pytest.fixture(params=["typed", "raw"])
def sysfs(request: pytest.FixtureRequest) -> str:
    """Root of sysfs with the types of the kernel itself, or with named ones."""
    return "/sys" if request.param == "typed" else str(request.getfixturevalue("without_types"))


@pytest.fixture(params=[True, False], ids=["results", "no-results"])
def tracer(request: pytest.FixtureRequest, sysfs: str) -> Iterator[_native.BlockTracer]:
    with closing(_native.BlockTracer(sysfs, fetch=request.param)) as tracer:
        assert tracer.form() == (sysfs == "/sys", request.param)
        yield tracer


def test_many_threads_lose_nothing_and_what_is_missing_is_said(
    tracer: _native.BlockTracer, make_loop: Callable[..., str]
) -> None:
    device = make_loop(SIZE_BYTES)
    with queue_set(device, nomerges="2"), opened(device) as fd:
        before = read_device(tracer, device)
        tracer.cells()
        target = OpenFile(fd, device, SIZE_BYTES, 4096, writable=True)
        with running("threads", [target], Knobs(queue_depth=THREADS, read_pct=60)) as load:
            eventually(lambda: load.counters()[0, READS] + load.counters()[0, WRITES] > ENOUGH, "I/Os")
        after = read_device(tracer, device)
        settle(tracer, device)
    counts, seen = load.counters()[0], grown(before, after)
    # Some kernels skip programs while a certain task is current: what they lose, they say.
    losses = tracer.losses()
    lost = sum(losses[name] for name in LOST)
    for name, column in (("reads", READS), ("writes", WRITES)):
        assert seen[name] <= counts[column] <= seen[name] + lost
        assert seen[f"{name[:-1]}_bytes"] == 4096 * seen[name]
    check_histograms(tracer, device, seen)
    assert 0 < seen["service_max_ns"] <= seen["latency_max_ns"] <= seen["queue_max_ns"] + seen["service_max_ns"]
    assert seen["uncounted"] == losses["overtaken"] == 0
    if tracer.form()[1]:
        assert 0 < seen["busy_ns"] <= seen["service_read_ns"] + seen["service_write_ns"]
    else:
        assert after["busy_ns"] == after["in_driver_peak"] == after["in_driver_peak_most"] == MISSING


def settle(tracer: _native.BlockTracer, *devices: str) -> None:
    """Wait until I/Os whose completion was missed are found and counted as such."""
    eventually(
        lambda: all(read_device(tracer, device)["in_flight_now"] == 0 for device in devices), "nothing in flight"
    )


def check_histograms(tracer: _native.BlockTracer, device: str, seen: dict[str, int]) -> None:
    """Every I/O is in the histograms of its direction, and those are of the times that were added up."""
    row, series, bucket, count = tracer.cells()
    for number, name in enumerate(TRACE_SERIES):
        mine = (row == row_of(tracer, device)) & (series == number)
        direction = name.rpartition("_")[2]
        assert count[mine].sum() == seen[f"{direction}s"]
        total_ns = (bucket_midpoints_ns(SCALE, bucket[mine]) * count[mine]).sum()
        # Half a bucket, and the 64 ns of the first ones.
        assert total_ns == pytest.approx(seen[f"{name}_ns"], rel=0.04, abs=64 * int(count[mine].sum()))


def test_devices_that_come_at_once_each_get_a_place(tracer: _native.BlockTracer, make_loop: Callable[..., str]) -> None:
    """Places of devices, cells and histograms are taken by several CPUs at the same time."""
    devices = [make_loop(SIZE_BYTES) for _ in range(8)]
    start = threading.Barrier(len(devices))

    def read(device: str) -> None:
        with opened(device) as fd:
            start.wait()
            read_extents(fd, [(4096 * number, 4096) for number in range(READS_OF_EACH)])

    with ThreadPoolExecutor(len(devices)) as threads:
        list(threads.map(read, devices))
    settle(tracer, *devices)
    found = [read_device(tracer, device)["reads"] for device in devices]
    losses = tracer.losses()
    lost = sum(losses[name] for name in LOST)
    # Whoever looks at a new device may read, too; what is counted twice would be twice as many.
    assert all(READS_OF_EACH - lost <= reads < 1.5 * READS_OF_EACH for reads in found)
    assert losses["untracked_devices"] == losses["series_without_histogram"] == 0
    assert len(set(tracer.names())) == len(tracer.names())


@pytest.mark.parametrize("fetch", [True, False])
def test_doctor_says_which_form_is_in_force_and_what_it_lacks(
    fetch: bool, sysfs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native, "BlockTracer", partial(_native.BlockTracer, fetch=fetch))
    check = exact_time(Path("/proc"), Path(sysfs))
    assert check.status is (Status.OK if fetch else Status.LIMITED)
    assert ("raw, arguments without types" in check.found) is (sysfs != "/sys")
    assert check.found.endswith("tier exact") is fetch
    assert ("but for busy time and peaks in the driver" in check.found) is not fetch
