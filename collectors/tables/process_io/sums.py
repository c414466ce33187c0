"""Additive sums of I/O by process and device over an interval, over several, or over a report, and their figures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values, instant, ratio
from collectors.derive.known_sums import KnownSums, Slots, enlarged
from collectors.derive.percentiles import AddedHistograms, RowCells, cells_of, percentiles_ns
from collectors.derive.quotients import Quotients
from collectors.graph import Graph
from collectors.model import FrameTable, Histograms, Rows, Sample, Step, Table
from collectors.tables.block.derive.traced import Traced, traced_wholly
from collectors.tables.process_io.schema import PROCESS_IO, PROCESS_SCALE, SUMS, TABLE, parts_of, row_key
from collectors.tables.process_io.subject import FIELDS

_NS_PER_MS = 1e6
_FACTS = ("pid", "cgroup")
_DEVICE_TIMES = ("queue_read_ns", "queue_write_ns", "service_read_ns", "service_write_ns")


class ProcessSums(Struct, frozen=True, eq=False):
    """Sums by row, an array for each of SUMS and the facts, and `device_ns`, the time of all I/Os of the device."""

    rows: Rows
    values: Mapping[str, Values]
    cells: RowCells
    elapsed_s: float


def interval_sums(previous: Sample | None, current: Sample, table: Table) -> ProcessSums:
    """Compute the sums of the interval between two samples; NaN unless exact time was measured for all of it."""
    found = traced_wholly(previous, current)
    columns, values = table.schema.columns, table.values
    sums = {name: instant(columns, values, name) for name in (*SUMS, *_FACTS)}
    if found is None:
        sums |= {name: np.full(len(table.rows), np.nan) for name in SUMS}
    device_ns = {} if found is None else _device_times(found)
    disks = [parts_of(key)[0] for key in table.rows.keys]
    sums["device_ns"] = np.array([device_ns.get(disk, np.nan) for disk in disks], np.float64)
    cells = _cells(table.rows, current.histograms.get(PROCESS_IO.name) if found is not None else None)
    return ProcessSums(table.rows, sums, cells, float("nan") if found is None else found.elapsed_s)


def device_times(previous: Sample | None, current: Sample) -> dict[str, float]:
    """Time of all reads and writes of each device in an interval, in nanoseconds; empty where it is not known."""
    found = traced_wholly(previous, current)
    return {} if found is None else _device_times(found)


def _device_times(found: Traced) -> dict[str, float]:
    times = np.nansum([found.values[name] for name in _DEVICE_TIMES], axis=0)
    return {found.rows.keys[row]: time for row, time in zip(found.at.tolist(), times.tolist(), strict=True)}


def _cells(rows: Rows, histograms: Histograms | None) -> RowCells:
    if histograms is not None:
        return cells_of(rows, histograms)
    empty = np.zeros(0, np.uint32)
    return RowCells(PROCESS_SCALE, empty, empty.astype(np.uint16), empty.astype(np.uint64))


def with_heads(sums: ProcessSums, graph: Graph) -> ProcessSums:
    """Add the rows of NVMe multipath heads, for which no tracepoint fires: each is the sum over the paths to it.

    A dm-multipath map has rows of its own, so its paths are not added up.
    """
    whole = _with_head_rows(sums.rows, graph)
    if whole is None:
        return sums
    rows, source, target = whole
    values = {}
    for name, column in sums.values.items():
        added = np.zeros(len(rows))
        np.add.at(added, target, column[source])
        added[: len(column)] = column
        values[name] = added
    first = np.unique(target, return_index=True)[1]
    for name in _FACTS:
        values[name][target[first]] = sums.values[name][source[first]]
    head_ns = _head_times(sums, graph)
    values["device_ns"][len(sums.rows) :] = [head_ns[parts_of(key)[0]] for key in rows.keys[len(sums.rows) :]]
    return ProcessSums(rows, values, _copied(sums.cells, source, target), sums.elapsed_s)


@lru_cache(maxsize=2)
def _head_of_path(graph: Graph) -> Mapping[str, str]:
    heads = {lun.key for lun in graph.luns if lun.multipath == "nvme"}
    return {path.key: path.lun for path in graph.paths if path.lun in heads}


@lru_cache(maxsize=2)
def _with_head_rows(rows: Rows, graph: Graph) -> tuple[Rows, NDArray[np.intp], NDArray[np.intp]] | None:
    """All rows with those of heads, and which row is added to which; None if there are none."""
    head_of, names, pairs = _head_of_path(graph), dict(zip(rows.keys, rows.names, strict=True)), []
    for source, (key, name) in enumerate(zip(rows.keys, rows.names, strict=True)):
        disk, submitter = parts_of(key)
        if disk in head_of:
            head_key = row_key(head_of[disk], submitter)
            names.setdefault(head_key, name)
            pairs.append((source, head_key))
    if not pairs:
        return None
    whole = Rows(tuple(names), tuple(names.values()))
    source_rows = np.array([source for source, _ in pairs], np.intp)
    return whole, source_rows, np.array([whole.positions[key] for _, key in pairs], np.intp)


def _head_times(sums: ProcessSums, graph: Graph) -> dict[str, float]:
    """Time of the I/Os of each head: that of its paths, each once."""
    head_of, times = _head_of_path(graph), {}
    for key, time_ns in zip(sums.rows.keys, sums.values["device_ns"].tolist(), strict=True):
        disk = parts_of(key)[0]
        if disk in head_of:
            times[disk] = time_ns
    found: dict[str, float] = {}
    for path, time_ns in times.items():
        found[head_of[path]] = found.get(head_of[path], 0.0) + time_ns
    return found


def _copied(cells: RowCells, source: NDArray[np.intp], target: NDArray[np.intp]) -> RowCells:
    """Cells in which those of some rows count under another row, too."""
    most = int(max(source.max(initial=0), cells.row.max(initial=0))) + 1
    target_of = np.full(most, -1, np.int64)
    target_of[source] = target
    also = target_of[cells.row.astype(np.intp)]
    kept = also >= 0
    return RowCells(
        cells.scale,
        np.concatenate([cells.row, also[kept].astype(np.uint32)]),
        np.concatenate([cells.bucket, cells.bucket[kept]]),
        np.concatenate([cells.count, cells.count[kept]]),
    )


_QUOTIENTS = Quotients(FIELDS)


def figures(sums: ProcessSums) -> FrameTable:
    """All fields of the sums."""
    values = sums.values
    columns = _QUOTIENTS.of({**values, "elapsed_s": np.full(len(sums.rows), sums.elapsed_s)})
    columns["p99_ms"] = percentiles_ns(sums.cells, len(sums.rows), (99.0,))[0] / _NS_PER_MS
    columns["share_pct"] = np.minimum(100.0, 100.0 * ratio(values["latency_ns"], values["device_ns"]))
    return FrameTable(sums.rows, columns | {name: values[name] for name in _FACTS})


class ProcessAverages:
    """Figures over a report: rates are over all of its time, whenever a process was there."""

    def __init__(self) -> None:
        self._slots = Slots()
        self._sums = KnownSums()
        self._facts: dict[str, Values] = {}
        self._device_ns: dict[str, float] = {}
        self._histograms = AddedHistograms()
        self._elapsed_s = 0.0
        self._graph = Graph()

    def add(self, step: Step) -> None:
        """Add the interval of a step."""
        table = step.current.tables.get(PROCESS_IO.name)
        if step.previous is None or table is None:
            return
        self._graph = step.current.topology.graph
        sums = interval_sums(step.previous, step.current, table)
        if np.isnan(sums.elapsed_s):
            return
        self._elapsed_s += sums.elapsed_s
        for disk, time_ns in device_times(step.previous, step.current).items():
            self._device_ns[disk] = self._device_ns.get(disk, 0.0) + time_ns
        at = self._slots.of(sums.rows)
        self._sums.add(len(self._slots), at, {name: sums.values[name] for name in SUMS}, sums.elapsed_s)
        for name in _FACTS:
            held = self._facts[name] = enlarged(self._facts.get(name), len(self._slots))
            held[at] = sums.values[name]
        self._histograms.add(step.current.histograms.get(PROCESS_IO.name))

    def tables(self) -> dict[str, FrameTable]:
        """Figures of all rows that were ever there."""
        if not len(self._slots):
            return {}
        rows = self._slots.rows
        values = {**self._sums.totals(np.full(len(rows), self._elapsed_s)), **self._facts}
        values["device_ns"] = np.array([self._device_ns.get(parts_of(key)[0], np.nan) for key in rows.keys])
        sums = ProcessSums(rows, values, _cells(rows, self._histograms.total()), self._elapsed_s)
        return {TABLE: figures(with_heads(sums, self._graph))}
