"""Tables of I/O by process and device: what the programs counted, with names, the busiest rows only."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.exact.tracer import PROCESS_COLUMNS, ProcessIos
from collectors.kernel.identity import storable_name
from collectors.model import MISSING, Histograms, Rows, Table
from collectors.tables.process.reader import command_and_start
from collectors.tables.process_io.schema import (
    MOST_ROWS,
    PROCESS_IO,
    PROCESS_LEFT,
    PROCESS_SCALE,
    PROCESS_SERIES,
    SUMS,
    Submitter,
    process_key,
    row_key,
    submitter_name,
    workqueue_key,
)
from engine._native import read_attributes

_AT = {name: position for position, name in enumerate(PROCESS_COLUMNS)}
_COMMAND = slice(_AT["command_0"], _AT["command_3"] + 1)
_IDENTITY = [_AT[name] for name in ("kind", "process", "started_ns")] + list(range(*_COMMAND.indices(99)))
_TICKS = os.sysconf("SC_CLK_TCK")
_READ_AGAIN = 3
"""Readings of a new process in which its name is read: it is that of its parent until it calls execve(2)."""


class _Process(Struct, frozen=True):
    """One submitter of I/Os as the programs identify it."""

    kind: int
    pid: int
    started_ns: int
    command: str

    @property
    def key(self) -> str:
        if self.kind == Submitter.WORKQUEUE:
            return workqueue_key(self.command)
        # proc_pid_stat(5), field 22: clock ticks, rounded down.
        started = self.started_ns * _TICKS // 1_000_000_000 if self.started_ns else None
        return process_key(self.pid, started)


class ProcessNames:
    """Names of processes as PROCFS/PID/stat has them; the programs have those of the first I/O."""

    def __init__(self, procfs: str) -> None:
        self._procfs = procfs
        self._names: dict[str, str] = {}
        self._readings: dict[str, int] = {}

    def of(self, processes: Mapping[str, _Process]) -> dict[str, str]:
        """Names by key; those of processes that are gone are as the programs have them."""
        self._readings = {key: self._readings.get(key, 0) for key in processes}
        self._names = {key: self._names.get(key, process.command) for key, process in processes.items()}
        fresh = [
            (key, process)
            for key, process in processes.items()
            if process.kind == Submitter.PROCESS and self._readings[key] < _READ_AGAIN
        ]
        stats = read_attributes(self._procfs, [str(process.pid) for _, process in fresh], ["stat"])
        for (key, process), (stat,) in zip(fresh, stats, strict=True):
            self._readings[key] += 1
            name, started = command_and_start(stat or b"")
            if name and key == f"{process.pid}:{started}":
                self._names[key] = name
        return self._names


class ProcessTables:
    """Makes PROCESS_IO, its histograms and PROCESS_LEFT; rows are one object while they are the same."""

    def __init__(self, procfs: str) -> None:
        self._names = ProcessNames(procfs)
        self._known: dict[tuple[int, ...], _Process] = {}
        """Processes of the last reading by what identifies them."""
        self._rows = Rows((), ())
        self._left = Rows(("left",), ("left",))

    def read(
        self, ios: ProcessIos, position: Callable[[NDArray[np.uint32]], NDArray[np.intp]], disks: Rows, unknown: int
    ) -> tuple[dict[str, Table], Histograms]:
        """Make the tables of one reading.

        Args:
            ios: what the tracer counted since the last reading.
            position: position in `disks` of the tracer's rows, -1 for those that are not in it.
            disks: rows of the trace table.
            unknown: I/Os counted for no process since tracing began.
        """
        values, cells = ios
        disk = position(values[:, _AT["row"]].astype(np.uint32))
        chosen = busiest(values, disk)
        processes = self._processes(values[chosen])
        names = self._names.of({process.key: process for process in processes})
        keys = [row_key(disks.keys[disk[row]], one.key) for row, one in zip(chosen.tolist(), processes, strict=True)]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        chosen = chosen[np.array(order, np.intp)]
        sorted_processes = [processes[number] for number in order]
        labels = tuple(submitter_name(one.kind, one.pid, names[one.key]) for one in sorted_processes)
        rows = self._rows_of(tuple(keys[number] for number in order), labels)
        left = len(values) - len(chosen), _ios(values) - _ios(values[chosen]), unknown
        tables = {
            PROCESS_IO.name: Table(PROCESS_IO, rows, _raw(values[chosen])),
            PROCESS_LEFT.name: Table(PROCESS_LEFT, self._left, np.array([left], np.uint64)),
        }
        return tables, _histograms(rows, chosen, cells, len(values))

    def _processes(self, values: NDArray[np.uint64]) -> list[_Process]:
        """Return the processes of rows; those that were there at the last reading are the same objects."""
        identities = list(map(tuple, values[:, _IDENTITY].tolist()))
        known = self._known
        self._known = {identity: known.get(identity) or _process(identity) for identity in dict.fromkeys(identities)}
        return [self._known[identity] for identity in identities]

    def _rows_of(self, keys: tuple[str, ...], names: tuple[str, ...]) -> Rows:
        if self._rows.keys != keys or self._rows.names != names:
            self._rows = Rows(keys, names)
        return self._rows


def busiest(values: NDArray[np.uint64], disk: NDArray[np.intp]) -> NDArray[np.intp]:
    """Rows with the largest time of I/Os: the first of every device, then the second, up to the limit.

    Rows of devices that are gone (`disk` below 0) are left out.
    """
    known = np.flatnonzero(disk >= 0)
    time_ns = values[known, _AT["latency_ns"]].astype(np.int64)
    order = known[np.lexsort((-time_ns, disk[known]))]
    of = disk[order]
    first = np.flatnonzero(np.append(True, of[1:] != of[:-1])) if len(of) else np.zeros(0, np.intp)
    rank = np.arange(len(of)) - np.repeat(first, np.diff(np.append(first, len(of))))
    largest = -values[order, _AT["latency_ns"]].astype(np.int64)
    chosen: NDArray[np.intp] = np.sort(order[np.lexsort((largest, rank))[:MOST_ROWS]])
    return chosen


def _process(identity: Sequence[int]) -> _Process:
    """Make the process that the columns _IDENTITY of a row identify."""
    kind, pid, started_ns, *words = identity
    command = b"".join(word.to_bytes(8, "little") for word in words).split(b"\0", 1)[0]
    return _Process(kind, pid, started_ns, storable_name(command.decode("utf-8", "surrogateescape")))


def _ios(values: NDArray[np.uint64]) -> int:
    return int(values[:, [_AT["reads"], _AT["writes"]]].sum())


def _raw(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    pid = values[:, _AT["process"]]
    facts = [np.where(pid == 0, MISSING, pid), values[:, _AT["kind"]], values[:, _AT["cgroup"]]]
    columns = [*facts, *(values[:, _AT[name]] for name in SUMS)]
    return np.stack(columns, axis=1).astype(np.uint64)


def _histograms(rows: Rows, chosen: NDArray[np.intp], cells: NDArray[np.uint64], count: int) -> Histograms:
    row_of = np.full(count, -1, np.intp)
    row_of[chosen] = np.arange(len(chosen))
    row = row_of[cells[:, 0].astype(np.intp)]
    kept = row >= 0
    return Histograms(
        PROCESS_SCALE,
        rows,
        PROCESS_SERIES,
        row[kept].astype(np.uint32),
        np.zeros(int(kept.sum()), np.uint8),
        cells[kept, 1].astype(np.uint16),
        cells[kept, 2],
    )


def added(parts: Sequence[ProcessIos]) -> ProcessIos:
    """Add up readings: rows of one process on one device are one row."""
    values = np.concatenate([rows for rows, _ in parts])
    offsets = np.cumsum([0, *(len(rows) for rows, _ in parts)])
    shifted = [cells + np.array([offset, 0, 0], np.uint64) for (_, cells), offset in zip(parts, offsets, strict=False)]
    cells = np.concatenate(shifted)
    # A workqueue has neither process nor start: its name identifies it.
    identity = [_AT[name] for name in ("row", "process", "kind", "started_ns")] + list(range(*_COMMAND.indices(99)))
    _, first, row_of = np.unique(values[:, identity], axis=0, return_index=True, return_inverse=True)
    total = values[first].copy()
    sums = [_AT[name] for name in SUMS]
    total[:, sums] = 0
    for column in sums:
        np.add.at(total[:, column], row_of.reshape(-1), values[:, column])
    of_cell = row_of.reshape(-1)[cells[:, 0].astype(np.intp)].astype(np.uint64)
    places, cell_of = np.unique(np.stack([of_cell, cells[:, 1]], axis=1), axis=0, return_inverse=True)
    counts = np.zeros(len(places), np.uint64)
    np.add.at(counts, cell_of.reshape(-1), cells[:, 2])
    return total, np.column_stack([places, counts]).astype(np.uint64).reshape(-1, 3)
