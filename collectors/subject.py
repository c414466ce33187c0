"""What the program knows of one kind of thing it measures; `collectors.registry` lists all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from collectors.field import Field
from collectors.graph import Graph
from collectors.model import (
    Device,
    Frame,
    FrameTable,
    Histograms,
    Rows,
    Sample,
    Schema,
    Step,
    Table,
    Tier,
    Topology,
)
from collectors.sampling.reading import Collector
from collectors.sampling.settings import ReadingSettings
from engine.text import safe_text


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """Two samples of a source and the time between them; `previous` is None where there is nothing to compare with."""

    previous: Sample | None
    current: Sample
    elapsed_s: float

    def before(self, name: str) -> Table | None:
        """Return a raw table of the sample before; None without one."""
        return None if self.previous is None else self.previous.tables.get(name)

    def now(self, name: str) -> Table | None:
        """Return a raw table of the sample at the end; None without one."""
        return self.current.tables.get(name)

    def histograms(self, name: str) -> Histograms | None:
        """Return histograms of the interval; None without any."""
        return self.current.histograms.get(name)


def interval_s(previous: Sample | None, current: Sample) -> float:
    """Length of the interval between two samples, NaN where there is none."""
    if previous is None or current.monotonic_ns <= previous.monotonic_ns:
        return float("nan")
    return (current.monotonic_ns - previous.monotonic_ns) / 1e9


@dataclass(frozen=True, slots=True)
class SampledHost:
    """What readers may know of the host that is sampled."""

    procfs: str
    sysfs: str
    disks: Callable[[], Table | None]
    """The latest table of block counters."""
    graph: Callable[[], Graph]
    """The latest device graph."""
    devices: Callable[[], Mapping[str, Device]]
    """The latest facts of devices, by key."""
    tier: Tier
    """The best that may be used besides exact time."""
    settings: ReadingSettings


Derivation = Callable[[Interval, Table], Mapping[str, FrameTable]]
"""Frame tables of an interval, made of the raw table at its end."""


class Averages(Protocol):
    """Adds up the intervals of a report, each row over the time in which it could be measured."""

    def add(self, step: Step) -> None:
        """Add the interval of a step; one without a previous sample has none."""

    def tables(self) -> Mapping[str, FrameTable]:
        """Figures over the whole report, of everything that was ever there; empty where nothing was."""


Readers = Callable[[SampledHost], Iterable[Collector]]
"""Makes what reads the raw tables of a subject, at every tick from then on; the modules of readers are to be imported
in it, since registries are needed before the first screen and readers only after it."""


@dataclass(frozen=True, slots=True)
class Report:
    """How `lunscope report` shows a subject."""

    option: str
    """The flag that asks for it, with its dash."""
    help: str
    """What that flag shows, for --help."""
    columns: tuple[str, ...]
    """Field ids, in order."""
    split_columns: tuple[str, ...]
    """The same with reads and writes apart (-R)."""
    distribution_columns: tuple[str, ...]
    """Percentiles and largest latencies (-P); the plain columns of a subject that has none."""
    averages: Callable[[], Averages]
    """Makes what adds up a report; subjects with the same one share it."""
    unasked: bool = True
    """Whether JSON has its rows when no subject is asked for by its flag; not where they may be thousands."""
    remarks: Callable[[Frame], Iterable[str]] = lambda _: ()
    """Lines that belong below the rows of an interval."""


Active = Callable[[FrameTable], NDArray[np.bool_]]


def any_above(*fields: str) -> Active:
    """Choose rows in which any of these fields is above 0."""

    def active(table: FrameTable) -> NDArray[np.bool_]:
        found = np.zeros(len(table.rows), np.bool_)
        for field_id in fields:
            if field_id in table.columns:
                found |= table.columns[field_id] > 0
        return found

    return active


_DID_IO = any_above("iops", "in_flight")


def _names(rows: Rows, topology: Topology) -> tuple[str, ...]:  # noqa: ARG001 - as all labels
    return rows.names


def _no_facts(key: str, topology: Topology) -> Mapping[str, object]:  # noqa: ARG001 - as all facts
    return {}


def device_identity(key: str, topology: Topology) -> str:
    """Name what survives renaming of a device: wwid, NGUID or serial where there is one, else the key."""
    device = topology.devices.get(key)
    return safe_text(device.persistent_id if device is not None and device.persistent_id else key)


@dataclass(frozen=True, slots=True)
class Subject:
    """One kind of thing that is measured: a row of its frame table is one of them."""

    table: str
    """Id of its frame table, and its key in JSON."""
    title: str
    """What stands over names in reports."""
    one: str
    """What one of them is called in a text."""
    fields: tuple[Field, ...]
    """Figures, in the order in which columns are offered."""
    raw: tuple[Schema, ...] = ()
    """Raw tables that are recorded for it; what is derived starts from the first."""
    sampled_raw: tuple[Schema, ...] = ()
    """Raw tables that only looks at what is in flight give."""
    exact_raw: tuple[Schema, ...] = ()
    """Raw tables that only exact time gives."""
    readers: Readers = lambda _: ()
    """Makes what reads them; none for disks and exact time, by which a source knows what else there is to read, and for
    a load, which is read by whoever drives it."""
    derive: Derivation | None = None
    """Makes its frame table, and those of other subjects that come of the same raw table and so have none."""
    report: Report | None = None
    columns: tuple[str, ...] = ()
    """Field ids of its grid, most important first."""
    active: Active = _DID_IO
    """Which rows did anything in the interval, or hold something back: those that are worth a line."""
    charts: tuple[str, ...] = ()
    """Field ids whose recent past is kept for charts."""
    labels: Callable[[Rows, Topology], tuple[str, ...]] = _names
    """What the rows are called."""
    facts: Callable[[str, Topology], Mapping[str, object]] = _no_facts
    """What a reader of JSON needs beside the figures of a row, by its key; safe to print."""
    identity: Callable[[str, Topology], str] = device_identity
    """What survives renaming of a row, by its key."""
