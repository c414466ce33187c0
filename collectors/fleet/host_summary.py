"""What an agent sends each second of a host: its disks, their sum, its load; small enough for thousands of hosts."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import aligned, column_deltas
from collectors.derive.roles import is_base, roles
from collectors.graph import Graph
from collectors.model import MISSING, Histograms, HistogramScale, Rows, Sample, Schema, Table, Topology
from collectors.tables.block.schema import DISK, DISKSTATS_COLUMNS, TRACE, TRACE_SERIES
from collectors.tables.fleet.schema import FLEET, SERVICE, SERVICE_SERIES
from collectors.tables.load.schema import LOAD
from engine.replacing import replace

SENT_SUB_BITS = 4
"""16 buckets per octave: a percentile is right within 3 %, and 50 busy disks fit into 2 KB a second."""
SENT_DISK = Schema(DISK.name, DISKSTATS_COLUMNS)
"""Counters of disks as they are sent: without the samples of requests in the driver, which change all the time."""
_SECTOR_BYTES = 512
_ADDED = {
    "reads": ("reads", 1),
    "writes": ("writes", 1),
    "read_bytes": ("read_sectors", _SECTOR_BYTES),
    "write_bytes": ("write_sectors", _SECTOR_BYTES),
    "read_ms": ("read_ms", 1),
    "write_ms": ("write_ms", 1),
}
"""Counters of disks that are added up, and their unit."""
_SERVICE_OF = tuple(TRACE_SERIES.index(f"service_{name}") for name in SERVICE_SERIES)


class Summary:
    """Reduces the samples of one host; `name` is its only row."""

    def __init__(self, name: str) -> None:
        self._rows = Rows((name,), (name,))
        self._before: Table | None = None
        self._before_ns = 0
        self._sums = dict.fromkeys(_ADDED, 0)

    def of(self, sample: Sample, late_ns: int, cpu_ns: int) -> Sample:
        """Reduce a sample taken so much after its time on the grid; `cpu_ns` is what the process has used so far.

        It must be given every sample: what the disks did is the sum of their increases.
        """
        disks, load = sample.tables.get(DISK.name), sample.tables.get(LOAD.name)
        return self._reduced(sample, self._fleet(sample, disks, load, late_ns, cpu_ns))

    def of_full(self, sample: Sample) -> Sample:
        """Reduce a full sample of an agent, which holds what all disks did as the agent has added it up."""
        return self._reduced(sample, sample.tables.get(FLEET.name))

    def _reduced(self, sample: Sample, fleet: Table | None) -> Sample:
        disks, load = sample.tables.get(DISK.name), sample.tables.get(LOAD.name)
        tables = {} if fleet is None else {FLEET.name: fleet}
        histograms: dict[str, Histograms] = {}
        topology = sample.topology
        if disks is not None:
            rows, at, topology = _sent(disks.rows, sample.topology)
            tables[DISK.name] = Table(SENT_DISK, rows, disks.values[at, : len(DISKSTATS_COLUMNS)])
        if load is not None:
            tables[LOAD.name] = load
            if LOAD.name in sample.histograms:
                histograms[LOAD.name] = sample.histograms[LOAD.name]
        service = sample.histograms.get(TRACE.name)
        if service is not None:
            histograms[SERVICE] = self._service(service, sample.topology)
        return Sample(sample.time_ns, sample.monotonic_ns, topology, tables, histograms, sample.events)

    def _fleet(self, sample: Sample, disks: Table | None, load: Table | None, late_ns: int, cpu_ns: int) -> Table:
        values = np.full((1, len(FLEET.columns)), MISSING, np.uint64)
        found = {"sampled_ns": sample.monotonic_ns, "late_ns": late_ns, "agent_cpu_ns": cpu_ns}
        if disks is not None:
            found |= self._disk_sums(disks, _base(disks.rows, sample.topology), sample.monotonic_ns)
        if load is not None:
            found |= _load_sums(load)
        for name, value in found.items():
            values[0, FLEET.index(name)] = value
        return Table(FLEET, self._rows, values)

    def _disk_sums(self, disks: Table, base: NDArray[np.intp], monotonic_ns: int) -> dict[str, int]:
        """Add up the increases of each disk: a disk that appears brings what it counted before, one that goes takes it.

        A new disk counts from its second sample on.
        """
        elapsed_s = (monotonic_ns - self._before_ns) / 1e9
        before = aligned(self._before, disks)
        deltas = column_deltas(disks.schema.columns, before, disks.values, elapsed_s=elapsed_s)
        self._before, self._before_ns = disks, monotonic_ns
        for name, (column, unit) in _ADDED.items():
            self._sums[name] += int(np.nansum(deltas[column][base])) * unit
        now = disks.column("in_flight_now")[base]
        return {"disks": len(base), "in_flight_now": int(now[now != MISSING].sum()), **self._sums}

    def _service(self, cells: Histograms, topology: Topology) -> Histograms:
        """Merge the service times of all disks that are not built on others."""
        base = np.append(np.array([is_base(key, topology) for key in cells.rows.keys], np.bool_), False)
        kept = base[np.minimum(cells.row, len(cells.rows))] & np.isin(cells.series_index, _SERVICE_OF)
        series = (cells.series_index[kept] == _SERVICE_OF[1]).astype(np.int64)
        scale, bucket = coarse(cells.scale, cells.bucket[kept])
        code, where = np.unique((series << 16) | bucket, return_inverse=True)
        count = np.zeros(len(code), np.uint64)
        np.add.at(count, where, cells.count[kept])
        return Histograms(
            scale,
            self._rows,
            SERVICE_SERIES,
            np.zeros(len(code), np.uint32),
            (code >> 16).astype(np.uint8),
            (code & 0xFFFF).astype(np.uint16),
            count,
        )


def with_sums(full: Sample, reduced: Sample) -> Sample:
    """Add to a full sample what its host did as a whole, which only the agent has added up from the beginning."""
    return replace(full, tables={**full.tables, FLEET.name: reduced.tables[FLEET.name]})


def without_sums(full: Sample) -> Sample:
    """Undo `with_sums`: the screens of one host have no table of hosts."""
    return replace(full, tables={name: table for name, table in full.tables.items() if name != FLEET.name})


def _load_sums(load: Table) -> dict[str, int]:
    def added(name: str) -> int:
        return int(load.column(name).sum())

    return {
        "load_ios": added("read_ios") + added("write_ios"),
        "load_bytes": added("read_bytes") + added("write_bytes"),
        "load_latency_ns": added("read_latency_ns") + added("write_latency_ns"),
    }


@functools.lru_cache(maxsize=2)
def _base(rows: Rows, topology: Topology) -> NDArray[np.intp]:
    """Rows of disks that are not built on others; paths of a LUN are not disks but what it is built on."""
    kept = [row for row, key in enumerate(rows.keys) if is_base(key, topology)]
    return np.array(kept, np.intp)


@functools.lru_cache(maxsize=2)
def _sent(rows: Rows, topology: Topology) -> tuple[Rows, NDArray[np.intp], Topology]:
    """Whole disks and where they are in the table, and their facts without the device graph."""
    found = roles(rows, topology.graph)
    kept = Rows(tuple(found.disks.keys), tuple(found.disks.names))
    devices = {key: topology.devices[key] for key in kept.keys if key in topology.devices}
    return kept, found.disk_at, Topology(devices, topology.host, Graph())


def coarse(scale: HistogramScale, bucket: NDArray[np.uint16]) -> tuple[HistogramScale, NDArray[np.int64]]:
    """Return the scale that is sent and the buckets there; the same where it is as coarse already.

    Counts stay exact, times are right within half a bucket.
    """
    fine = bucket.astype(np.int64)
    drop = scale.sub_bits - SENT_SUB_BITS
    if drop <= 0:
        return scale, fine
    octave = np.maximum((fine >> scale.sub_bits) - 1, 0)
    low = fine - (octave << scale.sub_bits)
    # Values below 2 ** sub_bits have one bucket per unit: there the coarse scale has octaves of its own.
    extra = np.maximum(np.frexp(low.astype(np.float64))[1] - 1 - SENT_SUB_BITS, 0)
    octaves = octave + extra
    return HistogramScale(scale.unit_ns, SENT_SUB_BITS), (octaves << SENT_SUB_BITS) + (low >> extra)
