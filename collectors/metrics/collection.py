"""Adds samples and renders the families of the chosen levels."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import aligned
from collectors.derive.roles import Roles
from collectors.exact.tracer import SCALE
from collectors.metrics.exposition import exposition
from collectors.metrics.family import MetricPoint
from collectors.metrics.registry import ALWAYS
from collectors.metrics.running_sums import LatencySums, PortSums
from collectors.metrics.view import MetricLevel, MetricView
from collectors.model import MISSING, Sample, Step, Table
from collectors.tables.block.schema import TRACE, TRACE_SERIES, TRACER

_TIMES = [TRACE.index(f"{series}_ns") for series in TRACE_SERIES]


class MetricsCollection:
    """Samples go in from one thread; texts come out in any."""

    def __init__(self, levels: Sequence[MetricLevel], *, per_octave: int, node_names: bool) -> None:
        self._levels = (*levels, ALWAYS)
        self._ids = {level.id for level in levels}
        self._node_names = node_names
        self._lock = threading.Lock()
        self._disk_latency = LatencySums(SCALE, TRACE_SERIES, per_octave)
        self._port_latency = LatencySums(SCALE, TRACE_SERIES, per_octave)
        self._port_sums = PortSums(lambda roles: (roles.ports, roles.port_of_row))
        self._target_sums = PortSums(lambda roles: (roles.targets, roles.target_of_row))
        self._cpu_ns = 0
        self._traced: tuple[Table, int] | None = None
        self._view: MetricView | None = None

    def add(self, step: Step) -> None:
        """Take over a sample."""
        sample = step.current
        with self._lock:
            self._cpu_ns += sample.cost_ns
            sums = self._disk_latency, self._port_latency, self._port_sums, self._target_sums
            self._view = MetricView(sample, *sums, self._cpu_ns)
            roles = self._view.roles
            if "ports" in self._ids:
                self._port_sums.add(step, roles)
            if "target-ports" in self._ids:
                self._target_sums.add(step, roles)
            self._add_latency(sample, roles)

    def measured(self) -> list[MetricPoint]:
        """Measure all families from the last sample; nothing before the first."""
        with self._lock:
            view = self._view
            found = () if view is None else (one for level in self._levels for one in level.measure(view))
            return [one for one in found if self._node_names or not one.family.of_node_exporter]

    def text(self) -> bytes:
        """Render the exposition."""
        return "".join(exposition(self.measured())).encode()

    @property
    def series(self) -> int:
        """Number of time series now, and once all disks and ports have had I/O."""
        return sum(one.series for one in self.measured()) + self._series_to_come()

    def _series_to_come(self) -> int:
        if self._view is None or TRACER.name not in self._view.sample.tables:
            return 0
        roles, count = self._view.roles, 0
        for level, sums, rows in (
            ("latency", self._disk_latency, roles.disks),
            ("port-latency", self._port_latency, roles.ports),
        ):
            if level in self._ids:
                count += max(0, len(rows) - len(sums.keys)) * sums.series_per_key
        return count

    def _add_latency(self, sample: Sample, roles: Roles) -> None:
        if not self._ids & {"latency", "port-latency"}:
            return
        trace, cells = sample.tables.get(TRACE.name), sample.histograms.get(TRACE.name)
        if trace is None or cells is None:
            self._traced = None
        else:
            times_ns = self._new_times(trace, sample.tables.get(TRACER.name))
            if "latency" in self._ids:
                self._disk_latency.add(_disk_of(trace, roles, sample), cells, times_ns)
            if "port-latency" in self._ids:
                self._port_latency.add(_port_of(trace, roles, sample), cells, times_ns)
        self._disk_latency.keep(roles.disks.keys)
        self._port_latency.keep(roles.ports.keys)

    def _new_times(self, trace: Table, tracer: Table | None) -> NDArray[np.float64]:
        """Time of the I/Os of the interval by row and series; a new tracer, and a new row, count from 0."""
        started_ns = 0 if tracer is None else int(tracer.column("started_ns")[0])
        known = self._traced is not None and self._traced[1] == started_ns
        before = aligned(self._traced[0] if self._traced is not None and known else None, trace)[:, _TIMES]
        now = np.where(trace.values[:, _TIMES] == MISSING, 0, trace.values[:, _TIMES])
        since_zero = (before == MISSING) | (before > now)
        self._traced = trace, started_ns
        increase: NDArray[np.float64] = np.where(since_zero, now, now - before).astype(np.float64)
        return increase


def _disk_of(trace: Table, roles: Roles, sample: Sample) -> list[str]:
    """Key of the disk of each traced row: its own, or the NVMe head of a path, whose I/Os are traced on the paths."""
    disks = sample.tables["disk"].rows
    heads = set(roles.nvme_heads.tolist())
    owners: list[str] = []
    for key in trace.rows.keys:
        row = disks.positions.get(key, -1)
        lun = int(roles.lun_of_row[row]) if row >= 0 else -1
        if row in heads or row < 0:
            owners.append("")
        elif lun in heads:
            owners.append(disks.keys[lun])
        else:
            owners.append(key if key in roles.disks.positions else "")
    return owners


def _port_of(trace: Table, roles: Roles, sample: Sample) -> list[str]:
    """Key of the port of each traced row that is a path."""
    disks = sample.tables["disk"].rows
    rows = [disks.positions.get(key, -1) for key in trace.rows.keys]
    ports = [int(roles.port_of_row[row]) if row >= 0 else -1 for row in rows]
    return [roles.ports.keys[port] if port >= 0 else "" for port in ports]
