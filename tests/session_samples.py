"""Samples as recorders see them: busy and idle disks, processes that come and go, load with histograms, events."""

from __future__ import annotations

import numpy as np

from collectors.graph import Graph, Layer, Lun, MountedFilesystem, Path, Port, TargetPort
from collectors.model import (
    MISSING,
    Device,
    Histograms,
    HistogramScale,
    HostFacts,
    Rows,
    Sample,
    Schema,
    Table,
    Tier,
    Topology,
)
from collectors.tables.block.schema import DISK
from collectors.tables.host.schema import HOST
from collectors.tables.load.schema import LOAD
from collectors.tables.process.schema import PROCESS
from engine.events import Event, EventKind

START_NS = 1_763_690_400_123_456_789
MONOTONIC_NS = 98_765_432_109
SECOND_NS = 10**9


def disk_rows(count: int) -> Rows:
    return Rows(tuple(f"sd{i}:8:{16 * i}#{i}" for i in range(count)), tuple(f"sd{i}" for i in range(count)))


def topology_of(rows: Rows, host: str = "node1") -> Topology:
    devices = {
        key: Device(key, name, "disk", 8, 16 * i, diskseq=i, size_bytes=1 << 40, model="\x1b[31mred", holders=("dm-0",))
        for i, (key, name) in enumerate(zip(rows.keys, rows.names, strict=True))
    }
    return Topology(devices, HostFacts(host, "6.18", cpus=4, tier=Tier.SAMPLED, notices=("no BPF",)), graph_of(rows))


def graph_of(rows: Rows) -> Graph:
    """All rows as paths of a LUN that has no row."""
    lun = "dm-0:253:0#9"
    return Graph(
        ports=(Port("fc:1", "host1", "fc", queue_limit=512, members=("host1", "nvme0")), Port("x", "host2", "scsi")),
        targets=(TargetPort("fc:2", "\x1b[2J", "fc", "array"),),
        luns=(Lun(lun, "dm-0", "dm", "service-time"),),
        paths=tuple(Path(key, key[:3], lun, "fc:1", "fc:2", preferred=True, failures=3) for key in rows.keys),
        layers=(Layer("dm-1:253:1#9", "dm-1", "lvm", "vg-x", 1 << 30, (lun,)),),
        mounts=(MountedFilesystem("dm-1:253:1#9", "/srv", "xfs"),),
        notices=("odd",),
    )


class Machine:
    """A simulated host; every `sample` is one interval later."""

    def __init__(self, disks: int = 6, active: int = 3, seed: int = 1, interval_ns: int = SECOND_NS) -> None:
        self._random = np.random.default_rng(seed)
        self._interval_ns = interval_ns
        self._tick = 0
        self.rows = disk_rows(disks)
        self.topology = topology_of(self.rows)
        self._active = self._random.choice(disks, active, replace=False)
        self._rates = self._random.uniform(3, 8, active)
        self._disks = self._random.integers(0, 1 << 30, (disks, len(DISK.columns))).astype(np.uint64)
        self._disks[:, 11:15] = MISSING
        self._host = self._random.integers(0, 1 << 40, (1, len(HOST.columns))).astype(np.uint64)
        self._load_rows = Rows(("scratch 1", "scratch 2"), ("scratch 1", "scratch 2"))

    def sample(self, *events: Event) -> Sample:
        self._rates += self._random.normal(0, 0.1, len(self._rates))
        moves = self._random.poisson(np.exp(self._rates)[:, None] * np.ones(11)).astype(np.uint64)
        self._disks[self._active, :11] += moves
        self._host += self._random.integers(0, 10**6, self._host.shape).astype(np.uint64)
        tick, self._tick = self._tick, self._tick + 1
        load = self._random.integers(0, 1 << 20, (2, len(LOAD.columns))).astype(np.uint64)
        return Sample(
            time_ns=START_NS + tick * self._interval_ns + int(self._random.integers(0, 10**6)),
            monotonic_ns=MONOTONIC_NS + tick * self._interval_ns,
            topology=self.topology,
            tables={
                "disk": Table(DISK, self.rows, self._disks.copy()),
                "host": Table(HOST, _HOST_ROWS, self._host.copy()),
                "process": self._processes(tick),
                "load": Table(LOAD, self._load_rows, load),
            },
            histograms={"load": self._histograms()},
            events=events,
            late_ns=int(self._random.integers(0, 10**6)),
            cost_ns=int(self._random.integers(0, 10**7)),
        )

    def _processes(self, tick: int) -> Table:
        pids = [100 + (tick // 2 + i * 7) % 40 for i in range(5 + tick % 3)]
        rows = Rows(tuple(f"{pid}:1" for pid in pids), tuple(f"job \udcff{pid}" for pid in pids))
        return Table(PROCESS, rows, np.full((len(pids), len(PROCESS.columns)), tick, np.uint64))

    def _histograms(self) -> Histograms:
        cells = int(self._random.integers(0, 50))
        return Histograms(
            HistogramScale(1, 6),
            self._load_rows,
            ("read", "write"),
            self._random.integers(0, 2, cells).astype(np.uint32),
            self._random.integers(0, 2, cells).astype(np.uint8),
            self._random.integers(0, 1200, cells).astype(np.uint16),
            self._random.integers(1, 1 << 30, cells).astype(np.uint64),
        )


_HOST_ROWS = Rows(("host",), ("host",))


def single(tick: int, schema: Schema, rows: Rows, values: object) -> Sample:
    """A sample of one table."""
    array = np.array(values, np.uint64).reshape(len(rows), len(schema.columns))
    times = (START_NS + tick * SECOND_NS, MONOTONIC_NS + tick * SECOND_NS)
    return Sample(*times, Topology(), {schema.name: Table(schema, rows, array)})


def note(text: str, time_ns: int = START_NS) -> Event:
    return Event(EventKind.NOTE, text, time_ns, MONOTONIC_NS, {"depth": 8, "share": 0.5, "who": "x", "none": None})


def cells_of(histograms: Histograms) -> list[tuple[int, ...]]:
    arrays = (histograms.row, histograms.series_index, histograms.bucket, histograms.count)
    return sorted(zip(*(array.tolist() for array in arrays), strict=True))


def assert_same(actual: Sample | None, expected: Sample) -> None:
    """Every number, name and event; the order of histogram cells means nothing."""
    assert actual is not None
    for name in ("time_ns", "monotonic_ns", "events", "late_ns", "cost_ns"):
        assert getattr(actual, name) == getattr(expected, name), name
    assert actual.topology.host == expected.topology.host
    assert actual.topology.devices == expected.topology.devices
    assert actual.topology.graph.records == expected.topology.graph.records
    assert list(actual.tables) == list(expected.tables)
    for name, table in expected.tables.items():
        other = actual.tables[name]
        assert (other.schema, other.rows.keys, other.rows.names) == (table.schema, table.rows.keys, table.rows.names)
        assert other.values.dtype == np.uint64
        np.testing.assert_array_equal(other.values, table.values)
    assert list(actual.histograms) == list(expected.histograms)
    for name, histograms in expected.histograms.items():
        found = actual.histograms[name]
        assert (found.scale, found.series, found.rows.keys) == (
            histograms.scale,
            histograms.series,
            histograms.rows.keys,
        )
        assert cells_of(found) == cells_of(histograms)
