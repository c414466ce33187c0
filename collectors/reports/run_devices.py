"""What the disks, paths and HBA ports under the targets of a run did while it ran; the disks as fio has them, too."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field

from collectors.kernel.cpu_limits import CpuLimit, CpuLimits
from collectors.kernel.cpu_users import CpuUser, ProcessTimes
from collectors.kernel.swap_areas import SwapArea, read_swap_areas
from collectors.model import FrameTable, Rows, Sample, Step, Tier, Topology
from collectors.registry import get_field, subject_of
from collectors.reports.report import row_document
from collectors.reports.run_events import KINDS
from collectors.subject import Averages, Interval, interval_s
from collectors.tables.nfs.connections import used_connections
from collectors.topology.below import Descent, Users, rows_below
from engine.events import Event
from engine.hostfs.storage import loop_storage_numbers
from engine.text import safe_text

FIGURES = ("queue_ms", "service_ms", "await_ms", "busy_pct", "in_flight", "iops", "bytes_per_s")
"""Columns of the text; in JSON these always have a tier."""
_MOST_EVENTS = 10_000


class Stored(Protocol):
    """A load with the devices that its targets are stored on."""

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the targets."""

    @property
    def devices(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the devices of each."""


class RunDevices(Struct, frozen=True, eq=False):
    """Figures over a run, of everything below its targets; I/Os of others on these devices are included."""

    elapsed_s: float
    """Time between the first and the last sample; 0 if there were not two, and only processors are known."""
    samples: int
    topology: Topology
    tables: Mapping[str, FrameTable]
    """"disks", "paths" and "hbas", those below the targets only, from above to below."""
    users: Mapping[str, Users]
    """Targets above a row, by table and key."""
    caches: FrameTable | None = None
    """All caches of the host over the run; None where there are none."""
    cpu_users: tuple[CpuUser, ...] = ()
    """Other processes that used most of the processors during the run."""
    former_limits: Mapping[str, int] = field(default_factory=dict)
    """The highest limit of commands that each path had during the run, by key."""
    host: FrameTable | None = None
    """CPU, memory and paging of the host over the run."""
    cpu_limits: tuple[CpuLimit, ...] = ()
    """What limits the processor time of this process, and how much it held back."""
    swap_areas: int = 0
    """How many devices and files the host swaps to."""
    swaps: Users = field(default_factory=dict)
    """Those above each disk, by key."""
    connections: int | None = None
    """Connections to NFS servers that carried I/Os of the mounts of the targets; None without such a mount."""


class RunSamples:
    """Adds up the samples from the first after `begin` to the last before `end`.

    `observe` is called with every step by the thread that samples, everything else by that of the run.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun_ns: int | None = None
        self._topology = Topology()
        self._cpu_before: ProcessTimes | None = None
        self._cpu_users: tuple[CpuUser, ...] = ()
        self._limits_before: CpuLimits | None = None
        self._cpu_limits: tuple[CpuLimit, ...] = ()
        self._swaps: tuple[SwapArea, ...] = ()
        self._first: Sample | None = None
        self._last: Sample | None = None
        self._clear()

    def begin(self, now_ns: int) -> None:
        """Forget all samples; those taken from now on (CLOCK_MONOTONIC) count."""
        before, limits = ProcessTimes.now(), CpuLimits.now()
        with self._lock:
            self._begun_ns = now_ns
            self._clear()
            self._cpu_before, self._cpu_users = before, ()
            self._limits_before, self._cpu_limits, self._swaps = limits, (), ()

    def end(self) -> None:
        """Add no more samples."""
        after, limits, swaps = ProcessTimes.now(), CpuLimits.now(), tuple(read_swap_areas())
        with self._lock:
            if self._cpu_before is not None:
                self._cpu_users = after.users_since(self._cpu_before, os.cpu_count() or 1)
            if self._limits_before is not None:
                self._cpu_limits = limits.since(self._limits_before)
            self._swaps = swaps
            self._begun_ns = self._cpu_before = self._limits_before = None

    def observe(self, step: Step) -> None:
        """Add the interval of a step, if it began after `begin`."""
        with self._lock:
            if self._begun_ns is None or step.current.monotonic_ns < self._begun_ns:
                return
            self._note_events(step.current.events)
            if step.current.topology is not self._topology:
                self._topology = step.current.topology
                self._note_limits()
            self._samples += 1
            elapsed_s = interval_s(step.previous, step.current)
            if step.previous is None or step.previous.monotonic_ns < self._begun_ns or math.isnan(elapsed_s):
                return
            self._first, self._last = self._first or step.previous, step.current
            self._averages.add(step)
            self._caches.add(step)
            self._elapsed_s += elapsed_s

    def below(self, load: Stored, sysfs: Path, *, follow_files: bool = True) -> RunDevices | None:
        """Figures of what is below the targets of a run; None if it was over before anything was known.

        Processor time is known without samples, too: a load that is held up by its quota may have none.
        Without `follow_files` the files of loop devices are left alone: a storage that stalls might hold this up.
        """
        with self._lock:
            if not self._elapsed_s > 0:
                return self._without_samples()
            loop_storage = loop_storage_numbers if follow_files else _unknown_storage
            descent = Descent(self._topology, sysfs, loop_storage)
            found = descent.below(zip(load.targets, load.devices, strict=False))
            swaps = descent.below((area.name, area.numbers) for area in self._swaps)
            users = {"disks": found.disks, "paths": found.paths, "hbas": found.ports}
            tables = self._averages.tables()
            kept = {name: _kept(tables[name], users[name]) for name in users if name in tables}
            caches = self._caches.tables().get("caches")
            return RunDevices(
                self._elapsed_s,
                self._samples,
                self._topology,
                kept,
                users,
                caches,
                self._cpu_users,
                dict(self._former_limits),
                _host(self._first, self._last),
                self._cpu_limits,
                len(self._swaps),
                swaps.disks,
                used_connections(self._first, self._last, load.targets),
            )

    def _without_samples(self) -> RunDevices | None:
        if not (self._cpu_users or self._cpu_limits):
            return None
        return RunDevices(
            0.0, self._samples, Topology(), {}, {}, cpu_users=self._cpu_users, cpu_limits=self._cpu_limits
        )

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened on the host during the run, by time; the first ones if there are very many."""
        with self._lock:
            return tuple(sorted(self._events, key=lambda event: event.time_ns))

    def _note_events(self, events: Sequence[Event]) -> None:
        begun_ns = self._begun_ns or 0
        self._events += (event for event in events if event.kind in KINDS and event.monotonic_ns >= begun_ns)
        del self._events[_MOST_EVENTS:]

    def _note_limits(self) -> None:
        for path in self._topology.graph.paths:
            if path.queue_limit is not None:
                self._former_limits[path.key] = max(path.queue_limit, self._former_limits.get(path.key, 0))

    def _clear(self) -> None:
        self._averages, self._caches = _averages("disks"), _averages("caches")
        self._former_limits: dict[str, int] = {}
        self._first = self._last = None
        self._events: list[Event] = []
        self._elapsed_s, self._samples, self._topology = 0.0, 0, Topology()


def _unknown_storage(_sysfs: Path, _name: str) -> tuple[int, ...]:
    return ()


def _averages(table: str) -> Averages:
    report = subject_of(table).report
    assert report is not None
    return report.averages()


def _host(first: Sample | None, last: Sample | None) -> FrameTable | None:
    """Figures of the host between two samples; None where they were not read."""
    table, derive = None if last is None else last.tables.get("host"), subject_of("host").derive
    if first is None or last is None or table is None or derive is None:
        return None
    return derive(Interval(first, last, interval_s(first, last)), table)["host"]


def _kept(table: FrameTable, users: Users) -> FrameTable:
    return table.taken(rows_below(users, table.rows.keys))


def devices_document(devices: RunDevices | None) -> dict[str, object] | None:
    """Write the figures as in a line of `report --json`, with the targets above and the tier of each main figure."""
    if devices is None or not devices.elapsed_s > 0:
        return None
    return {
        "elapsed_s": round(devices.elapsed_s, 6),
        "samples": devices.samples,
        "tier": devices.topology.host.tier.name.lower(),
        "cpu_users": cpu_users_document(devices.cpu_users),
        **{
            name: [_row(devices, name, table, row) for row in range(len(table.rows))]
            for name, table in ((name, devices.tables.get(name, _NONE)) for name in devices.users)
        },
    }


def cpu_users_document(users: Sequence[CpuUser]) -> list[dict[str, object]]:
    """Write the processes that used most of the processors, the most first."""
    return [{"name": safe_text(one.name), "pid": one.pid, "share_pct": round(one.share_pct, 2)} for one in users]


_NONE = FrameTable(Rows((), ()), {})


def _row(devices: RunDevices, name: str, table: FrameTable, row: int) -> dict[str, object]:
    document = row_document(name, table, row, devices.topology)
    varying = document.pop("tiers")
    assert isinstance(varying, dict)
    tiers = varying | {figure: tier_of(name, table, row, figure).name.lower() for figure in FIGURES}
    return {**document, "targets": devices.users[name][table.rows.keys[row]], "tiers": tiers}


def tier_of(name: str, table: FrameTable, row: int, figure: str) -> Tier:
    """Tier of one figure of a disk, path or port; NONE where it is not known."""
    value = table.value(figure, row)
    if math.isnan(value):
        return Tier.NONE
    codes = table.tiers.get(figure)
    return get_field(name, figure).tier if codes is None else Tier(int(codes[row]))


_COUNTS = {
    "read_ios": "reads_per_s",
    "write_ios": "writes_per_s",
    "read_merges": "read_merges_per_s",
    "write_merges": "write_merges_per_s",
}


def fio_disks(devices: RunDevices | None) -> list[dict[str, object]]:
    """Write what each disk did over the run, also for others: counts, and milliseconds spent; what is unknown is 0."""
    table = None if devices is None else devices.tables.get("disks")
    if devices is None or table is None:
        return []
    return [_disk(table, row, devices.elapsed_s) for row in range(len(table.rows))]


def _disk(table: FrameTable, row: int, elapsed_s: float) -> dict[str, object]:
    counts = {name: _known(table, field, row) * elapsed_s for name, field in _COUNTS.items()}
    ticks = [counts[f"{way}_ios"] * _known(table, f"{way}_await_ms", row) for way in ("read", "write")]
    return {
        "name": table.rows.names[row],
        **{name: round(count) for name, count in counts.items()},
        "read_ticks": round(ticks[0]),
        "write_ticks": round(ticks[1]),
        "in_queue": round(sum(ticks)),
        "util": _known(table, "busy_pct", row),
    }


def _known(table: FrameTable, field: str, row: int) -> float:
    value = table.value(field, row)
    return 0.0 if math.isnan(value) else value
