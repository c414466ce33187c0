"""One sample of the whole fleet from the latest of each host: the same tables, rows named after host and device."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct, field

from collectors.fleet.fleet_host import FleetHost
from collectors.graph import Graph
from collectors.model import MISSING, Device, Histograms, HostFacts, Rows, Sample, Table, Tier, Topology
from collectors.paths.event_groups import FLEET_HOST
from collectors.tables.block.schema import DISK
from collectors.tables.fleet.schema import FLEET, SERVICE
from collectors.tables.load.schema import LOAD
from engine.events import Event, EventKind
from engine.replacing import replace

_PAUSE = 50
"""Merging the rows of all hosts takes 1/50 of the time at most."""


def host_key(host: str, key: str) -> str:
    """Key of a row of a host in a merged table; names of hosts have no slash."""
    return f"{host}/{key}"


def host_of(key: str) -> str:
    """Name of the host of a row."""
    return key.partition("/")[0]


class _MergedRows(Struct, eq=False):
    """Rows of one table of all hosts, merged again only where those of a host changed."""

    parts: tuple[Rows | None, ...] = ()
    rows: Rows = field(default_factory=lambda: Rows((), ()))
    starts: tuple[int, ...] = ()
    not_before_s: float = 0.0

    def follow(self, hosts: Iterable[str], parts: tuple[Rows | None, ...]) -> None:
        """Follow the rows of hosts; while many connect not at every interval, as thousands of rows take time."""
        if len(parts) == len(self.parts) and all(a is b for a, b in zip(parts, self.parts, strict=True)):
            return
        begun_s = time.monotonic()
        if begun_s < self.not_before_s:
            return
        keys: list[str] = []
        names: list[str] = []
        starts = []
        for host, part in zip(hosts, parts, strict=True):
            starts.append(len(keys))
            if part is not None:
                keys += [host_key(host, key) for key in part.keys]
                names += [f"{host}:{name}" for name in part.names]
        self.not_before_s = begun_s + _PAUSE * (time.monotonic() - begun_s)
        self.parts, self.rows, self.starts = parts, Rows(tuple(keys), tuple(names)), tuple(starts)


class FleetMerge:
    """Merges the samples of hosts; those that have none of an interval have MISSING in it."""

    def __init__(self, hosts: Mapping[str, FleetHost]) -> None:
        self._hosts = tuple(hosts.values())
        self._names = tuple(hosts)
        self._rows = {name: _MergedRows() for name in (DISK.name, LOAD.name)}
        self._fleet_rows = Rows(self._names, self._names)
        self._known: dict[str, list[Table | None]] = {
            name: [None] * len(self._hosts) for name in (FLEET.name, DISK.name, LOAD.name)
        }
        self._taken: list[Sample | None] = [None] * len(self._hosts)
        self._topologies: tuple[Topology | None, ...] = ()
        self._facts_not_before_s = 0.0
        self._topology = Topology(host=HostFacts(hostname=f"fleet of {len(self._hosts)} hosts"))

    def sample(self, due_ns: int, interval_ns: int) -> Sample:
        """Merge what belongs to a time of the grid, on our CLOCK_MONOTONIC."""
        wall_ns = time.time_ns() - (time.monotonic_ns() - due_ns)
        fresh = [self._fresh(host, due_ns, interval_ns) for host in self._hosts]
        events = self._events(fresh, wall_ns - due_ns)
        self._follow_topology(fresh)
        tables = {FLEET.name: self._fleet(fresh), DISK.name: self._table(DISK.name, fresh)}
        if any(known is not None for known in self._known_after(LOAD.name, fresh)):
            tables[LOAD.name] = self._table(LOAD.name, fresh)
        histograms: dict[str, Histograms] = {}
        for name, rows in ((LOAD.name, self._rows[LOAD.name].rows), (SERVICE, self._fleet_rows)):
            starts = self._rows[LOAD.name].starts if name == LOAD.name else tuple(range(len(self._hosts)))
            found = _merged_cells(name, fresh, rows, starts)
            if found is not None:
                histograms[name] = found
        return Sample(wall_ns, due_ns, self._topology, tables, histograms, events)

    def _fresh(self, host: FleetHost, due_ns: int, interval_ns: int) -> Sample | None:
        sample = host.sample
        if sample is None or not host.is_connected:
            return None
        taken_ns = sample.monotonic_ns - host.offset_ns
        return sample if abs(taken_ns - due_ns) <= interval_ns // 2 else None

    def _known_after(self, name: str, fresh: list[Sample | None]) -> list[Table | None]:
        known = self._known[name]
        for position, sample in enumerate(fresh):
            if sample is not None and name in sample.tables:
                known[position] = sample.tables[name]
        return known

    def _table(self, name: str, fresh: list[Sample | None]) -> Table:
        known = self._known_after(name, fresh)
        merged = self._rows[name]
        parts = tuple(None if table is None else table.rows for table in known)
        merged.follow(self._names, parts)
        schema = next((table.schema for table in known if table is not None), DISK)
        values = np.full((len(merged.rows), len(schema.columns)), MISSING, np.uint64)
        for start, sample, table, part in zip(merged.starts, fresh, known, merged.parts, strict=True):
            if sample is None or table is None or table.rows is not part:
                continue
            if sample.tables.get(name) is table:
                width = min(len(schema.columns), table.values.shape[1])
                values[start : start + len(table.rows), :width] = table.values[:, :width]
        return Table(schema, merged.rows, values)

    def _fleet(self, fresh: list[Sample | None]) -> Table:
        values = np.full((len(self._hosts), len(FLEET.columns)), MISSING, np.uint64)
        at = {column.id: position for position, column in enumerate(FLEET.columns)}
        for row, (host, sample) in enumerate(zip(self._hosts, fresh, strict=True)):
            table = None if sample is None else sample.tables.get(FLEET.name)
            if table is not None and len(table.rows) == 1 and table.values.shape[1] == len(FLEET.columns):
                values[row] = table.values[0]
            best = host.estimate.best
            if best is not None and host.is_connected:
                values[row, at["clock_bound_ns"]] = best.bound_ns
                values[row, at["round_trip_ns"]] = best.round_trip_ns
            if host.wall_error_ns is not None and host.is_connected:
                values[row, at["clock_ahead_ns"]] = max(host.wall_error_ns, 0)
                values[row, at["clock_behind_ns"]] = max(-host.wall_error_ns, 0)
            values[row, at["state"]] = host.state.number
            values[row, at["sent_bytes"]] = host.received_bytes
        return Table(FLEET, self._fleet_rows, values)

    def _events(self, fresh: list[Sample | None], wall_minus_monotonic_ns: int) -> tuple[Event, ...]:
        events: list[Event] = []
        for position, (host, sample) in enumerate(zip(self._hosts, fresh, strict=True)):
            while host.news:
                events.append(Event.now(EventKind.MONITOR, f"{host.name}: {host.news.popleft()}"))
            if sample is None or sample is self._taken[position]:
                continue
            self._taken[position] = sample
            for event in sample.events:
                ours_ns = event.monotonic_ns - host.offset_ns
                moved = replace(event, monotonic_ns=ours_ns, time_ns=ours_ns + wall_minus_monotonic_ns)
                named = {**event.data, FLEET_HOST: host.name}
                events.append(replace(moved, text=f"{host.name}: {event.text}", data=named))
        return tuple(sorted(events, key=lambda event: event.monotonic_ns))

    def _follow_topology(self, fresh: list[Sample | None]) -> None:
        before = self._topologies or (None,) * len(self._hosts)
        now = tuple(old if sample is None else sample.topology for old, sample in zip(before, fresh, strict=True))
        begun_s = time.monotonic()
        if all(a is b for a, b in zip(before, now, strict=True)) or begun_s < self._facts_not_before_s:
            return
        devices: dict[str, Device] = {}
        for name, topology in zip(self._names, now, strict=True):
            for device in () if topology is None else topology.devices.values():
                key = host_key(name, device.key)
                slaves = tuple(f"{name}:{slave}" for slave in device.slaves)
                devices[key] = replace(device, key=key, name=f"{name}:{device.name}", slaves=slaves)
        known = [topology.host for topology in now if topology is not None]
        facts = HostFacts(
            hostname=f"fleet of {len(self._hosts)} hosts",
            cpus=sum(host.cpus for host in known),
            tier=Tier.KERNEL,
        )
        self._topologies, self._topology = now, Topology(devices, facts, Graph())
        self._facts_not_before_s = begun_s + _PAUSE * (time.monotonic() - begun_s)


def _merged_cells(name: str, fresh: list[Sample | None], rows: Rows, starts: tuple[int, ...]) -> Histograms | None:
    """Add the cells of all hosts that have the same scale and series; those of other versions are left out."""
    found = [
        (start, sample.histograms[name])
        for start, sample in zip(starts, fresh, strict=False)
        if sample is not None and name in sample.histograms
    ]
    if not found:
        return None
    first = found[0][1]
    alike = [(start, each) for start, each in found if each.scale == first.scale and each.series == first.series]
    return Histograms(
        first.scale,
        rows,
        first.series,
        np.concatenate([each.row + np.uint32(start) for start, each in alike]),
        np.concatenate([each.series_index for _, each in alike]),
        np.concatenate([each.bucket for _, each in alike]),
        np.concatenate([each.count for _, each in alike]),
    )
