"""One tracer shared by several readers, each with its own intervals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectors.exact.probe.message import Message
from collectors.exact.probe.share import NfsShare, ThrottleShare
from collectors.exact.processes import added
from collectors.exact.tracer import PROCESS_COLUMNS, SLOW_COLUMNS, ProcessIos, Tracer, no_process_ios
from collectors.model import Kind
from collectors.sampling.programs import NfsProgram, ThrottleProgram
from collectors.tables.block.schema import TRACE

MOST_SLOW = 256
"""Slow I/Os buffered for a reader."""
MOST_PROCESSES = 2048
"""Processes on devices buffered for a reader before equal ones are merged; as many as the programs have places for."""
MOST_CELLS = 1 << 20
"""Histogram cells of one reader before equal ones are merged; until then readers share them."""

_PEAKS = np.flatnonzero([column.kind is Kind.PEAK for column in TRACE.columns])
_LATENCY = SLOW_COLUMNS.index("latency_ns")
_PROCESS_IOS = [PROCESS_COLUMNS.index(name) for name in ("reads", "writes")]


class Backlog:
    """Peaks, histogram cells and slow I/Os of one reader since its last poll."""

    def __init__(self) -> None:
        self._generation: int | None = None
        self._known = np.zeros((0, len(TRACE.columns)), np.uint64)
        self._peaks = np.zeros((0, len(_PEAKS)), np.uint64)
        self._slow = np.zeros((0, len(SLOW_COLUMNS)), np.uint64)
        self._commands: list[str] = []
        self._kept = np.zeros((0, 4), np.uint64)
        self._cells: list[NDArray[np.uint64]] = []
        self._shared_cells = 0
        self._processes: list[ProcessIos] = []
        self._process_rows = 0

    @property
    def kept_cells(self) -> int:
        """Histogram cells buffered for this reader alone."""
        return len(self._kept)

    def add(
        self,
        values: NDArray[np.uint64],
        cells: NDArray[np.uint64],
        slow: NDArray[np.uint64],
        commands: Sequence[str],
        processes: ProcessIos,
    ) -> None:
        """Add an interval that ended, whichever reader ended it.

        Args:
            values: shape (n, columns of TRACE).
            cells: shape (n, 4): row, series, bucket, count; not copied.
            slow: shape (n, len(SLOW_COLUMNS)).
            commands: command names of the slow I/Os.
            processes: what processes did on each device; not copied.
        """
        if len(processes[0]):
            self._processes.append(processes)
            self._process_rows += len(processes[0])
        if self._process_rows > MOST_PROCESSES:
            self._processes = [_most(added(self._processes))]
            self._process_rows = 0
        self._peaks = np.maximum(_padded(self._peaks, len(values)), values[:, _PEAKS])
        if len(slow):
            self._slow, self._commands = _slowest(np.concatenate([self._slow, slow]), [*self._commands, *commands])
        if len(cells):
            self._cells.append(cells)
            self._shared_cells += len(cells)
        if self._shared_cells > MOST_CELLS:
            self._kept = _added(np.concatenate([self._kept, *self._cells]))
            self._cells, self._shared_cells = [], 0

    def take(self, tracer: Tracer, values: NDArray[np.uint64]) -> Message:
        """Return and clear the backlog: changed rows with their values, peaks, cells and slow I/Os."""
        mine = values.copy()
        mine[:, _PEAKS] = self._peaks
        row = np.flatnonzero((mine != _padded(self._known, len(mine))).any(axis=1))
        cells = np.concatenate([self._kept, *self._cells])
        arrays: dict[str, NDArray[Any]] = {"row": row.astype(np.uint32), "values": mine[row], "cells": cells}
        arrays["slow"] = self._slow
        arrays["processes"], arrays["process_cells"] = self._taken_processes()
        head: dict[str, object] = {"rows": len(mine), "commands": self._commands, "generation": tracer.generation}
        if tracer.generation != self._generation:
            self._generation = tracer.generation
            head["names"] = tracer.names()
            arrays["numbers"] = tracer.numbers()
        self._known = mine
        self._forget()
        return Message(head, arrays)

    def _forget(self) -> None:
        self._peaks, self._slow, self._commands = self._peaks[:0].copy(), self._slow[:0].copy(), []
        self._kept, self._cells, self._shared_cells = self._kept[:0].copy(), [], 0
        self._processes, self._process_rows = [], 0

    def _taken_processes(self) -> ProcessIos:
        if len(self._processes) < 2:
            return self._processes[0] if self._processes else no_process_ios()
        return _most(added(self._processes))


def _padded(values: NDArray[np.uint64], rows: int) -> NDArray[np.uint64]:
    return values if len(values) == rows else np.pad(values, ((0, rows - len(values)), (0, 0)))


def _slowest(slow: NDArray[np.uint64], commands: list[str]) -> tuple[NDArray[np.uint64], list[str]]:
    order = np.argsort(slow[:, _LATENCY], kind="stable")[::-1][:MOST_SLOW]
    return slow[order], [commands[position] for position in order.tolist()]


def _most(processes: ProcessIos) -> ProcessIos:
    """Keep the rows with the most I/Os, up to the limit for a reader that is behind."""
    rows, cells = processes
    if len(rows) <= MOST_PROCESSES:
        return processes
    kept = np.sort(np.argsort(rows[:, _PROCESS_IOS].sum(axis=1), kind="stable")[-MOST_PROCESSES:])
    position_of = np.full(len(rows), -1, np.int64)
    position_of[kept] = np.arange(len(kept))
    position = position_of[cells[:, 0].astype(np.intp)]
    known = position >= 0
    return rows[kept], np.column_stack([position[known].astype(np.uint64), cells[known, 1:]])


def _added(cells: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Merge cells of one row, series and bucket."""
    # One number for the three (32, 8 and 16 bits): sorting numbers takes a tenth of the time of sorting rows.
    position = cells[:, 0] << np.uint64(24) | cells[:, 1] << np.uint64(16) | cells[:, 2]
    _, first, cell_of = np.unique(position, return_index=True, return_inverse=True)
    count = np.zeros(len(first), np.uint64)
    np.add.at(count, cell_of, cells[:, 3])
    return np.column_stack([cells[first, :3], count])


Group = tuple[str, ...]
"""Kernel names of the members."""

MOST_KEPT_CELLS = 1 << 21
"""Merged histogram cells buffered for all readers that are behind: 64 MiB."""
_MOST_QUOTED = 40


class Reader:
    """Requested groups and settings of one reader, and its backlog."""

    def __init__(self) -> None:
        self.groups: tuple[Group, ...] = ()
        self.tag_wait = False
        self.backlog = Backlog()
        self.traces = True
        """Whether it reads block counters: one that reads waits for limits or NFS calls only has no backlog of them."""


class Hub:
    """Attaches for the first reader and detaches after the last one."""

    def __init__(
        self,
        open_tracer: Callable[[], Tracer],
        open_throttle: Callable[[], ThrottleProgram] | None = None,
        open_nfs: Callable[[], NfsProgram] | None = None,
    ) -> None:
        self._open = open_tracer
        self._throttle = ThrottleShare(open_throttle)
        self._nfs = NfsShare(open_nfs)
        self._tracer: Tracer | None = None
        self._readers: list[Reader] = []
        self._groups: list[Group] = []
        self._tag_wait = False

    def enter(self) -> Reader:
        """Add a reader.

        Raises:
            OSError: the kernel refuses a step.
        """
        if self._tracer is None:
            self._tracer = self._open()
        reader = Reader()
        self._readers.append(reader)
        return reader

    def leave(self, reader: Reader) -> None:
        """Remove a reader, and stop what only it requested.

        Raises:
            OSError: the kernel refuses.
            ValueError: the tracer refuses what the remaining readers requested.
        """
        self._readers.remove(reader)
        self._throttle.leave(reader)
        self._nfs.leave(reader)
        if self._readers:
            self._apply_requests()
        else:
            self.close()

    def behind(self) -> Collection[Reader]:
        """Readers to disconnect because their backlog takes too much memory."""
        if sum(map(self._kept_cells, self._readers)) <= MOST_KEPT_CELLS:
            return ()
        return (max(self._readers, key=self._kept_cells),)

    def _kept_cells(self, reader: Reader) -> int:
        return reader.backlog.kept_cells + self._throttle.kept_cells(reader) + self._nfs.kept_cells(reader)

    def answer(self, reader: Reader, request: Message) -> Message:
        """Answer a request of a reader.

        Raises:
            OSError: the kernel refuses.
            ValueError: the request is invalid.
        """
        verb = request.head.get("verb")
        if verb == "turn":
            return self._end_interval(reader)
        if verb == "throttle":
            reader.traces, reader.backlog = False, Backlog()
            return self._throttle.answer(reader)
        if verb == "nfs":
            reader.traces, reader.backlog = False, Backlog()
            return self._nfs.answer(reader)
        if verb == "regroup":
            self._regroup(reader, _checked_groups(request.head.get("groups")))
        elif verb == "tag_wait":
            reader.tag_wait = bool(request.head.get("on"))
            self._apply_requests()
        elif verb == "rescan":
            self._traced().rescan()
        else:
            raise ValueError(f"no request {verb[:_MOST_QUOTED]!r}" if isinstance(verb, str) else "a request has a verb")
        return Message({"error": ""}, {"groups": self._groups_of(reader)})

    def close(self) -> None:
        """Detach; may be called twice."""
        tracer, self._tracer, self._groups, self._tag_wait = self._tracer, None, [], False
        self._throttle.close()
        self._nfs.close()
        if tracer is not None:
            tracer.close()

    def _traced(self) -> Tracer:
        assert self._tracer is not None, "there is a tracer while there are readers"
        return self._tracer

    def _end_interval(self, reader: Reader) -> Message:
        """End the interval for all readers, and return the backlog of this one."""
        tracer = self._traced()
        values, slow, processes = tracer.read(), tracer.slowest(), tracer.processes()
        # One array for all: readers that are behind share it in their backlogs.
        cells = np.stack([column.astype(np.uint64) for column in tracer.cells()], axis=1)
        reader.traces = True
        for one in self._readers:
            if not one.traces:
                continue
            one.backlog.add(values, cells, *slow, processes)
        handed = reader.backlog.take(tracer, values)
        head = {"error": "", "losses": dict(tracer.losses()), **handed.head}
        return Message(head, {**handed.arrays, "groups": self._groups_of(reader)})

    def _regroup(self, reader: Reader, groups: tuple[Group, ...]) -> None:
        before, reader.groups = reader.groups, groups
        try:
            self._apply_requests()
        except BaseException:
            # Refused groups would be refused again at every request of the other readers.
            reader.groups = before
            raise

    def _groups_of(self, reader: Reader) -> NDArray[np.uint64]:
        position_of = {group: position for position, group in enumerate(self._groups)}
        positions = [position_of[group] for group in reader.groups]
        return self._traced().read_groups()[positions].reshape(-1, 2)

    def _apply_requests(self) -> None:
        """Count the groups of all readers, and time waits for tags if any reader requests it."""
        groups = list(dict.fromkeys(group for reader in self._readers for group in reader.groups))
        if groups != self._groups:
            self._traced().regroup(groups)
            self._groups = groups
        tag_wait = any(reader.tag_wait for reader in self._readers)
        if tag_wait != self._tag_wait:
            self._traced().watch_tag_wait(tag_wait)
            self._tag_wait = tag_wait


def _checked_groups(groups: object) -> tuple[Group, ...]:
    well_formed = isinstance(groups, list) and all(
        isinstance(group, list) and all(isinstance(name, str) for name in group) for group in groups
    )
    if not well_formed:
        raise ValueError("groups are lists of names")
    assert isinstance(groups, list)
    return tuple(tuple(group) for group in groups)
