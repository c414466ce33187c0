"""Figures without rights against the exact ones of the same intervals, from a disk's first I/O on.

How far a single interval is off depends on what else runs here, so medians over several are judged; figures that are
left out are not wrong. Intervals in which the tracer missed a completion are not judged: to it such an I/O lasts until
its request is used again. Some hosts run no BPF program in an interrupt of certain processes, which no counter says.
"""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from collectors.derive.queue_split import MIN_SERVICE_MS
from collectors.model import MISSING, FrameTable, Step, Tier
from collectors.rates import derive
from collectors.sampling.reading import Reading
from collectors.sources.live import LiveSource
from collectors.tables.block.schema import DISK
from engine import _native
from engine.job.spec import Knobs
from tests import needs
from tests.kernel.backends import OpenFile, running
from tests.kernel.conftest import Storage
from tests.kernel.tracing import grown, opened, read_device

pytestmark = [
    pytest.mark.alone,
    pytest.mark.waits,
    pytest.mark.xdist_group("sampled truth"),  # They share what was measured.
    needs.loop,
    needs.tracer,
    needs.io_uring,
]

SIZE_BYTES = 128 << 20
RATE = 2_000.0
DEPTHS = (1, 16)
BURSTS = 2
BURST_STEPS = 5
IDLE_STEPS = 1
BUSY_TOLERANCE = 0.10
SERVICE_TOLERANCE = 0.20
LOST = ("stale", "healed", "unseen", "table_full")


class Truth:
    """Reads the exact counters of one disk right after the disk table of the same sample was read."""

    cpu_ns = 0

    def __init__(self, device: str, tracer: _native.BlockTracer) -> None:
        self._device = device
        self._tracer = tracer
        self.read_values: list[dict[str, int]] = []

    def read(self) -> Reading:
        values = read_device(self._tracer, self._device)
        losses = self._tracer.losses()
        self.read_values.append({**values, "lost": sum(losses[name] for name in LOST)})
        return Reading({})

    def close(self) -> None:
        """The tracer is the test's."""


@dataclass(frozen=True)
class Interval:
    exact: dict[str, int]
    elapsed_s: float
    sample_count: int
    shown: FrameTable
    row: int

    @property
    def busy_ratio(self) -> float:
        return self.shown.value("busy_pct", self.row) / 100 / (self.exact["busy_ns"] / 1e9 / self.elapsed_s)

    @property
    def service_ratio(self) -> float:
        exact_ms = self.exact["service_read_ns"] / self.exact["reads"] / 1e6
        return self.shown.value("service_ms", self.row) / exact_ms

    @property
    def busy_tier(self) -> int:
        return int(self.shown.tiers["busy_pct"][self.row])


def interval_of(step: Step, truth: Truth, name: str) -> Interval:
    frame = derive(step.previous, step.current)
    table, place = step.current.tables["disk"], DISK.index("driver_in_flight_samples")
    assert step.previous is not None
    row = table.rows.names.index(name)
    before, after = (int(sample.tables["disk"].values[row, place]) for sample in (step.previous, step.current))
    sample_count = 0 if MISSING in (before, after) else after - before
    shown = frame.tables["disks"]
    return Interval(
        grown(*truth.read_values[-2:]), frame.elapsed_s, sample_count, shown,
        shown.rows.names.index(name),
    )  # fmt: skip


def bursts(devices: dict[int, str], tracer: _native.BlockTracer) -> dict[int, list[list[Interval]]]:
    """Intervals of each burst by queue depth, the first being that in which the disk became busy.

    The disks take turns: one is idle for longer than the sampler watches it while the other is busy.
    """
    truths = {depth: Truth(device, tracer) for depth, device in devices.items()}
    source = LiveSource(1.0, tier="sampled", extra_collectors=list(truths.values()))
    order, found = list(devices) * BURSTS, {depth: list[list[Interval]]() for depth in devices}
    with ExitStack() as stack:
        load = stack.enter_context(ExitStack())
        targets = {
            depth: OpenFile(stack.enter_context(opened(device)), device, SIZE_BYTES, 4096)
            for depth, device in devices.items()
        }
        for count, step in enumerate(source.steps(threading.Event())):
            burst, place = divmod(count - 1, IDLE_STEPS + BURST_STEPS)
            if burst < 0:
                continue
            depth = order[burst]
            if place >= IDLE_STEPS:
                found[depth][-1].append(interval_of(step, truths[depth], Path(devices[depth]).name))
            if place == IDLE_STEPS - 1:
                found[depth].append([])
                load.enter_context(running("uring", [targets[depth]], Knobs(queue_depth=depth, rate_iops=RATE)))
            if place == IDLE_STEPS + BURST_STEPS - 1:
                load.close()
                if burst == len(order) - 1:
                    break
    source.close()
    return found


@pytest.fixture(scope="module")
def bursts_by_depth(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[list[Interval]]]:
    with ExitStack() as stack:
        storage = Storage(tmp_path_factory.mktemp("loops"), stack)
        devices = {depth: storage.loop(SIZE_BYTES, options=("--direct-io=on",)) for depth in DEPTHS}
        # What was never written is read from nowhere, in less time than a sample takes.
        for device in devices.values():
            with Path(device).open("wb") as whole:
                for _ in range(SIZE_BYTES >> 20):
                    whole.write(os.urandom(1 << 20))
                os.fsync(whole.fileno())
        tracer = _native.BlockTracer()
        stack.callback(tracer.close)
        return bursts(devices, tracer)


@pytest.mark.parametrize("depth", DEPTHS)
def test_busy_and_service_are_near_the_exact_ones_or_left_out(
    depth: int, bursts_by_depth: dict[int, list[list[Interval]]]
) -> None:
    found = bursts_by_depth[depth]
    assert [len(burst) for burst in found] == [BURST_STEPS] * BURSTS
    if not all(first.exact["reads"] and all(each.sample_count for each in others) for first, *others in found):
        pytest.skip("needs processors: the load, or who samples it, did nothing in a whole interval")
    assert all(first.busy_tier == Tier.KERNEL for first, *_ in found)
    after_first = [interval for _, *others in found for interval in others]
    later = [interval for interval in after_first if interval.exact["reads"] and not interval.exact["lost"]]
    if not later:
        pytest.skip("the load did nothing, or the tracer missed I/Os, in each interval")
    exact_ms = [interval.exact["service_read_ns"] / interval.exact["reads"] / 1e6 for interval in later]
    if np.median(exact_ms) < MIN_SERVICE_MS:
        pytest.skip(f"the disk here answers faster than samples can tell: {np.median(exact_ms):.3f} ms")
    assert any(np.isfinite(burst[1].service_ratio) for burst in found), "no figures in the second interval"
    service = [interval.service_ratio for interval in later if np.isfinite(interval.service_ratio)]
    busy = [interval.busy_ratio for interval in later if interval.busy_tier == Tier.SAMPLED]
    if len(service) < 3 or (depth == 1 and len(busy) < 3):
        pytest.skip(f"left out nearly everywhere on this busy machine: {service}, {busy}")
    assert np.median(service) == pytest.approx(1.0, abs=SERVICE_TOLERANCE), service
    if len(busy) >= 3:
        assert np.median(np.abs(np.array(busy) - 1.0)) <= BUSY_TOLERANCE, busy
