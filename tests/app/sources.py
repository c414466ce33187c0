"""Sources of synthetic samples for the screens: no kernel, no clock, the same every time."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Iterator, Sequence
from threading import Event as StopFlag
from typing import Any

import numpy as np

from collectors.model import (
    MISSING,
    Device,
    HostFacts,
    Rows,
    Sample,
    Schema,
    Step,
    Table,
    Tier,
    Topology,
)
from collectors.tables.block.schema import DISK
from collectors.tables.host.schema import HOST
from collectors.tables.load.schema import LOAD
from collectors.tables.process.schema import PROCESS
from engine.errors import LunscopeError
from engine.events import Event, EventKind
from engine.replacing import replace

SECOND_NS = 1_000_000_000
START_NS = 1_767_225_600 * SECOND_NS
"""2026-01-01 00:00:00 UTC."""


class ListSource:
    """Yields given steps one by one, each when `advance` lets it, then waits for the end."""

    seekable = False
    interval_s = 1.0

    def __init__(self, samples: Sequence[Sample], *, failure: str = "", crash: Exception | None = None) -> None:
        self.samples = list(samples)
        self._failure = failure
        self._crash = crash
        self._allowed = threading.Semaphore(0)
        self.closed = False
        self.released = 0
        """How many samples were let out."""

    def advance(self, count: int = 1) -> None:
        """Let further samples out."""
        self.released += count
        self._allowed.release(count)

    def set_interval(self, interval_s: float) -> None:
        self.interval_s = interval_s

    def steps(self, stop: StopFlag) -> Iterator[Step]:
        previous: Sample | None = None
        for sample in self.samples:
            if not self._wait(stop):
                return
            yield Step(previous, sample)
            previous = sample
        if self._wait(stop):
            if self._failure:
                raise LunscopeError(self._failure)
            if self._crash is not None:
                raise self._crash

    def _wait(self, stop: StopFlag) -> bool:
        while not stop.is_set():
            if self._allowed.acquire(timeout=0.02):
                return True
        return False

    def close(self) -> None:
        self.closed = True


def table(schema: Schema, rows: Rows, **columns: Sequence[int] | np.ndarray[Any, Any] | int) -> Table:
    """A raw table with the named columns; the others are missing."""
    values = np.full((len(rows), len(schema.columns)), MISSING, np.uint64)
    for name, column in columns.items():
        values[:, schema.index(name)] = np.asarray(column, np.uint64)
    return Table(schema, rows, values)


def make_topology(names: Sequence[str], tier: Tier = Tier.SAMPLED) -> Topology:
    """Devices with facts to show."""
    devices = {
        f"{name}@{number}": Device(
            f"{name}@{number}",
            name,
            "disk",
            major=8,
            minor=16 * number,
            diskseq=number + 1,
            persistent_id=f"naa.6000{number:04x}",
            size_bytes=(number + 1) << 34,
            model="MODEL 9",
            vendor="ACME",
            serial=f"SN{number:05}",
            rotational=False,
            scheduler="mq-deadline",
            logical_block_bytes=512,
            physical_block_bytes=4096,
            nr_requests=128,
            queue_limit=32,
            write_cache="write back",
        )
        for number, name in enumerate(names)
    }
    host = HostFacts("db-host-01", "6.12.0", "x86_64", 8, 16 << 30, tier=tier)
    return Topology(devices, host)


@functools.cache
def make_samples(
    names: Sequence[str] = ("vda", "vdb", "sdc"), count: int = 40, events: bool = True
) -> tuple[Sample, ...]:
    """Samples a second apart; later names are hotter, and all swing so that charts have a shape."""
    topology = make_topology(names)
    rows = Rows(tuple(topology.devices), tuple(names))
    processes = Rows(("101:5", "202:6"), ("postgres", "rsync"))
    return tuple(_sample(tick, topology, rows, processes, events=events) for tick in range(count))


def _sample(tick: int, topology: Topology, rows: Rows, processes: Rows, *, events: bool) -> Sample:
    weights = np.arange(1, len(rows) + 1)
    ios = sum(900 + 400 * math.sin(step / 5) for step in range(tick))
    reads = (weights * ios).astype(np.uint64)
    latency_ms = (reads * weights // 10).astype(np.uint64)
    busy_ms = np.minimum(tick * 150 * weights, tick * 990).astype(np.uint64)
    sample_count = 500 * tick
    disk = table(
        DISK,
        rows,
        reads=reads,
        reads_merged=0,
        read_sectors=reads * 8,
        read_ms=latency_ms,
        writes=reads // 4,
        writes_merged=0,
        write_sectors=reads * 4,
        write_ms=latency_ms // 4,
        in_flight_now=weights,
        busy_ms=busy_ms,
        weighted_ms=latency_ms * 5 // 4,
        driver_in_flight_sum=(sample_count * weights // 4),
        driver_in_flight_samples=sample_count,
        driver_busy_samples=np.minimum(sample_count * weights // 5, sample_count),
        driver_in_flight_peak=weights * 3,
    )
    host = table(
        HOST,
        Rows(("host",), ("host",)),
        cpu_user_us=tick * 800_000,
        cpu_system_us=tick * 400_000,
        cpu_idle_us=tick * 6_000_000,
        cpu_iowait_us=tick * 700_000,
        cpu_irq_us=tick * 100_000,
        cpu_steal_us=0,
        cpus=8,
        memory_total_bytes=16 << 30,
        memory_available_bytes=9 << 30,
        dirty_bytes=12 << 20,
        writeback_bytes=0,
        psi_io_some_us=tick * 120_000,
        psi_io_full_us=tick * 60_000,
        psi_cpu_some_us=tick * 20_000,
        psi_memory_some_us=0,
        swap_in_bytes=0,
        swap_out_bytes=0,
        swap_used_bytes=0,
    )
    process = table(
        PROCESS,
        processes,
        pid=(101, 202),
        read_bytes=(5_000_000, 90_000),
        write_bytes=(100_000, 7_000_000),
        cancelled_write_bytes=0,
        syscalls_read=(700, 50),
        syscalls_write=(90, 400),
        span_us=1_000_000,
    )
    now_ns = START_NS + tick * SECOND_NS
    happened = (Event(EventKind.NOTE, f"note {tick}", now_ns, tick * SECOND_NS),) if events and tick % 10 == 5 else ()
    return Sample(
        now_ns,
        tick * SECOND_NS,
        topology,
        {"disk": disk, "host": host, "process": process},
        events=happened,
        late_ns=1_200_000,
        cost_ns=8_000_000,
    )


class ListRecording(ListSource):
    """The same samples as a recording with a cursor."""

    seekable = True
    notice = ""

    def __init__(self, samples: Sequence[Sample]) -> None:
        super().__init__(samples)
        self._wake = threading.Condition()
        self._position = 0
        self._shown = -1
        self.paused = True
        self.speed = 1.0

    @property
    def start_ns(self) -> int:
        return self.samples[0].time_ns

    @property
    def end_ns(self) -> int:
        return self.samples[-1].time_ns

    @property
    def position(self) -> int:
        """Number of the sample last yielded."""
        return max(self._shown, 0)

    @property
    def position_ns(self) -> int:
        return self.samples[max(self._shown, 0)].time_ns

    @property
    def is_moving(self) -> bool:
        return self._position != self._shown

    def advance(self, count: int = 1) -> None:
        """Play on by hand; nothing here follows a clock."""
        self._go(self._position + count)

    def steps(self, stop: StopFlag) -> Iterator[Step]:
        while not stop.is_set():
            with self._wake:
                if not self._wake.wait_for(lambda: self._position != self._shown, timeout=0.02):
                    continue
                self._shown = self._position
            yield self._step(self._shown)

    def _step(self, position: int) -> Step:
        return Step(self.samples[position - 1] if position else None, self.samples[position])

    def pause(self, paused: bool) -> None:
        self.paused = paused

    def set_speed(self, speed: float) -> None:
        self.speed = speed

    def step(self, count: int) -> int:
        self.paused = True
        self._go(self._position + count)
        return self.samples[self._position].time_ns

    def seek(self, time_ns: int) -> None:
        self._go(max(0, *(number for number, sample in enumerate(self.samples) if sample.time_ns <= time_ns)))

    def _go(self, position: int) -> None:
        with self._wake:
            self._position = min(max(position, 0), len(self.samples) - 1)
            self._wake.notify_all()

    def window(self, end_ns: int, count: int) -> Iterator[Step]:
        last = max(number for number, sample in enumerate(self.samples) if sample.time_ns <= end_ns)
        return (self._step(number) for number in range(max(0, last - count + 1), last + 1))

    def between(self, start_ns: int, end_ns: int) -> Iterator[Step]:
        times = [sample.time_ns for sample in self.samples]
        first, last = (
            max((n for n, at in enumerate(times) if at <= moment), default=0) for moment in (start_ns, end_ns)
        )
        return (self._step(number) for number in range(first, last + 1))

    def events(self) -> list[Event]:
        return [event for sample in self.samples for event in sample.events]


def renamed(sample: Sample, names: Sequence[str]) -> Sample:
    """The sample with other names on its disks, as hostile as wanted."""
    rows = sample.tables["disk"].rows
    devices = {
        key: replace(device, name=name, model=name, friendly_name=name)
        for (key, device), name in zip(sample.topology.devices.items(), names, strict=True)
    }
    disk = replace(sample.tables["disk"], rows=Rows(rows.keys, tuple(names)))
    return replace(
        sample,
        topology=replace(sample.topology, devices=devices),
        tables={**sample.tables, "disk": disk},
    )


def with_load(samples: Sequence[Sample]) -> list[Sample]:
    """The samples with a load of two targets beside them whose queue depth is raised half way."""
    rows = Rows(("load:1:0", "load:1:1"), ("/dev/vdb", "/dev/sdc"))
    turn = len(samples) // 2
    return [_with_load(sample, tick, turn, rows) for tick, sample in enumerate(samples)]


def _with_load(sample: Sample, tick: int, turn: int, rows: Rows) -> Sample:
    ios = 4_000 * min(tick, turn) + 6_500 * max(0, tick - turn)
    latency_ns = 4_000 * 2_000_000 * min(tick, turn) + 6_500 * 2_400_000 * max(0, tick - turn)
    load = table(
        LOAD,
        rows,
        read_ios=ios,
        read_bytes=ios * 8192,
        read_latency_ns=latency_ns,
        read_peak_ns=(9_000_000 + tick * 100_000, 31_000_000),
        write_ios=0,
        write_bytes=0,
        write_latency_ns=0,
        write_peak_ns=0,
        errors=0,
        in_flight_now=8,
        queue_depth=8 if tick < turn else 16,
        active=1,
        failing=0,
        epoch=0 if tick < turn else 1,
    )
    data: dict[str, str | int | float | None] = {"knob": "queue_depth", "from": 8, "to": 16, "epoch": 1}
    turned = Event(EventKind.KNOB, "queue depth 8 -> 16", sample.time_ns - SECOND_NS // 2, sample.monotonic_ns, data)
    events = (*sample.events, turned) if tick == turn + 1 else sample.events
    return replace(sample, tables={**sample.tables, "load": load}, events=events)
