"""Declaration of a subject, one kind of measured object; `collectors.registry` lists all subjects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values
from collectors.derive.known_sums import KnownSums, Slots, enlarged
from collectors.derive.percentiles import AddedHistograms
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
from collectors.sampling.programs import FreezeProgram, NfsProgram, ThrottleProgram
from collectors.sampling.reading import Collector
from collectors.sampling.reading_settings import ReadingSettings
from engine.text import safe_text


class Interval(Struct, frozen=True, eq=False):
    """Two samples of a source and the time between them; `previous` is None if there is none to compare with."""

    previous: Sample | None
    current: Sample
    elapsed_s: float

    def before(self, name: str) -> Table | None:
        """Return a raw table of the previous sample; None without one."""
        return None if self.previous is None else self.previous.tables.get(name)

    def now(self, name: str) -> Table | None:
        """Return a raw table of the sample at the end; None without one."""
        return self.current.tables.get(name)

    def histograms(self, name: str) -> Histograms | None:
        """Return histograms of the interval; None without any."""
        return self.current.histograms.get(name)


def interval_s(previous: Sample | None, current: Sample) -> float:
    """Length of the interval between two samples, NaN if there is none."""
    if previous is None or current.monotonic_ns <= previous.monotonic_ns:
        return float("nan")
    return (current.monotonic_ns - previous.monotonic_ns) / 1e9


class SampledHost(Struct, frozen=True):
    """Information for readers about the sampled host."""

    procfs: str
    sysfs: str
    disks: Callable[[], Table | None]
    """The latest table of block counters."""
    graph: Callable[[], Graph]
    """The latest device graph."""
    devices: Callable[[], Mapping[str, Device]]
    """The latest facts of devices, by key."""
    tier: Tier
    """The best tier allowed besides exact time."""
    settings: ReadingSettings
    targets: Callable[[], Sequence[str]] = tuple
    """Files and devices that the load of this process drives now, by path."""
    open_throttle: Callable[[], ThrottleProgram] | None = None
    """Attaches programs that time waits for limits, here or in the probe helper; None if none may be attached."""
    open_freezes: Callable[[], FreezeProgram] | None = None
    """Attaches programs that note when filesystems are frozen and thawed; None if none may be attached."""
    open_nfs: Callable[[], NfsProgram] | None = None
    """Attaches the program that times NFS calls; None if none may be attached."""


Derivation = Callable[[Interval, Table], Mapping[str, FrameTable]]
"""Derives frame tables of an interval from the raw table at its end."""


class Averages(Protocol):
    """Adds up the intervals of a report, each row over the time in which it was measured."""

    def add(self, step: Step) -> None:
        """Add the interval of a step; one without a previous sample has none."""

    def tables(self) -> Mapping[str, FrameTable]:
        """Figures over the whole report of all rows ever present; empty if there were none."""


Readers = Callable[[SampledHost], Iterable[Collector]]
"""Makes the collectors of the raw tables of a subject. It must import the modules of readers itself, since registries
are needed before the first screen and readers only after it."""


class Report(Struct, frozen=True):
    """How `lunscope report` shows a subject."""

    option: str
    """Option, with the dash."""
    help: str
    """Help text of that option."""
    columns: tuple[str, ...]
    """Field ids, in order."""
    split_columns: tuple[str, ...]
    """The same with reads and writes separately (-R)."""
    distribution_columns: tuple[str, ...]
    """Percentiles and largest latencies (-P); the plain columns if the subject has none."""
    averages: Callable[[], Averages]
    """Makes the averages of a report; subjects with the same factory share them."""
    unasked: bool = True
    """Whether JSON includes its rows if no subject is selected by option; not if there may be thousands."""
    remarks: Callable[[Frame], Iterable[str]] = lambda _: ()
    """Lines printed below the rows of an interval."""


Active = Callable[[FrameTable], NDArray[np.bool_]]


def any_above(*fields: str) -> Active:
    """Return a filter of rows in which any of these fields is above 0."""

    def active(table: FrameTable) -> NDArray[np.bool_]:
        found = np.zeros(len(table.rows), np.bool_)
        for field_id in fields:
            if field_id in table.columns:
                found |= table.columns[field_id] > 0
        return found

    return active


_DID_IO = any_above("iops", "in_flight")


def _names(rows: Rows, topology: Topology) -> tuple[str, ...]:  # noqa: ARG001 - as all labels
    return tuple(map(safe_text, rows.names))


def _no_facts(key: str, topology: Topology) -> Mapping[str, object]:  # noqa: ARG001 - as all facts
    return {}


def device_identity(key: str, topology: Topology) -> str:
    """Return the persistent id of a device: wwid, NGUID or serial if there is one, else the key."""
    device = topology.devices.get(key)
    return safe_text(device.persistent_id if device is not None and device.persistent_id else key)


class Subject(Struct, frozen=True):
    """One kind of measured object, with one row per object in its frame table."""

    table: str
    """Id of its frame table, and its key in JSON."""
    title: str
    """Header of the name column in reports."""
    one: str
    """Name of one object in text."""
    fields: tuple[Field, ...]
    """Figures, in column order."""
    many: str = ""
    """Name of several in text, where that is not `one` with an s."""
    raw: tuple[Schema, ...] = ()
    """Raw tables recorded for it; derivation starts from the first."""
    sampled_raw: tuple[Schema, ...] = ()
    """Raw tables of the in-flight samplers."""
    exact_raw: tuple[Schema, ...] = ()
    """Raw tables of exact time."""
    readers: Readers = lambda _: ()
    """Makes its readers; none for disks and exact time, which the source reads itself, and for a load, which is read by
    its driver."""
    derive: Derivation | None = None
    """Derives its frame table, and those of other subjects from the same raw table, which have no `derive`."""
    report: Report | None = None
    columns: tuple[str, ...] = ()
    """Field ids of its grid, most important first."""
    active: Active = _DID_IO
    """Filter of the rows to show: those with I/O in the interval, or with I/O held back."""
    charts: tuple[str, ...] = ()
    """Field ids with a history for charts."""
    labels: Callable[[Rows, Topology], tuple[str, ...]] = _names
    """Display names of the rows, safe to print."""
    facts: Callable[[str, Topology], Mapping[str, object]] = _no_facts
    """Additional facts of a row in JSON, by its key; safe to print."""
    identity: Callable[[str, Topology], str] = device_identity
    """Persistent id of a row, by its key."""

    def counted(self, count: int) -> str:
        """Name as many objects: "1 disk", "2 disks"."""
        return f"{count} {self.one if count == 1 else self.plural}"

    @property
    def plural(self) -> str:
        """Name of several in text."""
        return self.many or f"{self.one}s"

    @property
    def heading(self) -> str:
        """The same at the begin of a line."""
        return f"{self.plural[0].upper()}{self.plural[1:]}"


Sums = Callable[[Table | None, Table, float], Mapping[str, Values]]
Figures = Callable[[Mapping[str, Values]], Mapping[str, Values]]
Percentiles = Callable[[Rows, Histograms | None], Mapping[str, Values]]


class AddedSums:
    """Adds up the sums of intervals, each quantity over the time in which it was measured.

    `sums` computes the quantities of an interval, one value per row, and `figures` the fields of such sums; `elapsed_s`
    among them is NaN for rows without an interval. `latest` are not additive: the last value is used. `percentiles`
    computes fields from the histograms that have the name of the raw table.
    """

    def __init__(
        self,
        table: str,
        raw: Schema,
        sums: Sums,
        figures: Figures,
        *,
        latest: tuple[str, ...],
        percentiles: Percentiles = lambda _rows, _histograms: {},
    ) -> None:
        self._table, self._raw = table, raw.name
        self._make_sums, self._make_figures, self._make_percentiles = sums, figures, percentiles
        self._latest_names = latest
        self._slots = Slots()
        self._sums, self._histograms = KnownSums(), AddedHistograms()
        self._latest: dict[str, Values] = {}
        self._elapsed_s = np.zeros(0)

    def add(self, step: Step) -> None:
        """Add the interval of a step; one without a previous sample has none."""
        table, elapsed_s = step.current.tables.get(self._raw), interval_s(step.previous, step.current)
        if step.previous is None or table is None or np.isnan(elapsed_s):
            return
        self._histograms.add(step.current.histograms.get(self._raw))
        sums = dict(self._make_sums(step.previous.tables.get(self._raw), table, elapsed_s))
        at = self._slots.of(table.rows)
        measured = ~np.isnan(sums["elapsed_s"])
        self._put(at[measured], {quantity: values[measured] for quantity, values in sums.items()})

    def _put(self, at: NDArray[np.intp], sums: dict[str, Values]) -> None:
        slots = len(self._slots)
        for quantity in self._latest_names:
            held = self._latest[quantity] = enlarged(self._latest.get(quantity), slots)
            held[at] = sums.pop(quantity)
        elapsed_s = sums.pop("elapsed_s")
        self._elapsed_s = enlarged(self._elapsed_s, slots)
        self._elapsed_s[at] += elapsed_s
        self._sums.add(slots, at, sums, elapsed_s)

    def tables(self) -> dict[str, FrameTable]:
        """Figures of all rows ever present; no table if there were none."""
        if not len(self._slots):
            return {}
        latest = {quantity: enlarged(values, len(self._slots)) for quantity, values in self._latest.items()}
        sums = {**self._sums.totals(self._elapsed_s), **latest, "elapsed_s": self._elapsed_s}
        rows = self._slots.rows
        percentiles = self._make_percentiles(rows, self._histograms.total())
        return {self._table: FrameTable(rows, {**self._make_figures(sums), **percentiles})}
