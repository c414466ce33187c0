"""Tables of exact time at every tick while a tracer is attached."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from collectors.exact.begun_before import BegunBefore
from collectors.exact.losses import LossReporter, tracer_table
from collectors.exact.members import TracedGroups, TracedMembers
from collectors.exact.processes import ProcessTables
from collectors.exact.tracer import SCALE, SLOW_COLUMNS, Cells, Tracer
from collectors.exact.tracer_supervisor import TracerSupervisor
from collectors.model import MISSING, Histograms, Rows, Table, Topology
from collectors.sampling.reading import Reading
from collectors.sampling.slow_rows import chosen, command_words, ranks
from collectors.tables.block.schema import (
    NO_TAG_WAITS,
    SLOW_IO,
    TAG_WAITS_TIMED,
    TRACE,
    TRACE_GROUP,
    TRACE_SERIES,
    TRACER,
)
from collectors.tables.process_io.schema import PROCESS_IO
from engine.errors import words_of

_ROW = SLOW_COLUMNS.index("row")


def slow_table(values: NDArray[np.uint64], commands: Sequence[str], numbers: NDArray[np.uint32]) -> Table:
    """Make the table of the slowest I/Os, at least one of each device while there is room.

    Args:
        values: shape (n, len(SLOW_COLUMNS)), slowest first.
        commands: command name (comm) of each.
        numbers: device numbers of the tracer's rows, shape (rows, 2).
    """
    kept = chosen(values[:, _ROW])
    known = {name: values[kept, position] for position, name in enumerate(SLOW_COLUMNS)}
    number = numbers[known["row"].astype(np.intp)].astype(np.uint64).reshape(-1, 2)
    words = command_words([commands[row] for row in kept.tolist()])
    known |= {"completed_ns": known["done_ns"], "pid": known["process"]}
    known |= {"major": number[:, 0], "minor": number[:, 1]}
    known["tag_wait_ns"] = np.where(known["tag_wait_ns"] == 0, MISSING, known["tag_wait_ns"])
    known |= {"command_low": words[:, 0], "command_high": words[:, 1]}
    columns = [known[column.id] for column in SLOW_IO.columns]
    return Table(SLOW_IO, ranks(len(kept)), np.stack(columns, axis=1).astype(np.uint64))


STAY_TICKS = 30
"""Ticks without a full queue after which the probes are detached."""


class TagWaitSwitch:
    """Decides when to time waits for tags: while submitters sleep for one and shortly after, or as the operator set it.

    Linux 7.2 and later count the sleeps (tracepoint block_rq_tag_wait); before, a full queue is where they can be.
    """

    def __init__(self) -> None:
        self.wanted: bool | None = None
        """Setting of the operator: on, off, or None for automatic."""
        self._left = 0
        self._sleeps: int | None = None
        self._quiet_ticks, self._has_slept = 0, False
        self._limits = np.zeros(0)
        self._of: tuple[Rows, Topology] | None = None

    def note_sleeps(self, sleeps: int | None) -> None:
        """Take how often submitters have slept for a tag since tracing began; None where the kernel does not say."""
        is_quiet = sleeps is not None and sleeps == self._sleeps
        self._has_slept = self._sleeps is not None and not is_quiet
        self._quiet_ticks = self._quiet_ticks + 1 if is_quiet else 0
        self._sleeps = sleeps

    @property
    def was_quiet(self) -> bool:
        """Whether nobody slept for a tag in the last interval.

        The sleeps are read some time after the counters: none were counted in the interval before either.
        """
        return self._quiet_ticks > 1

    def decide(self, trace: Table, topology: Topology) -> bool:
        """Return whether to attach the probes, from the sleeps, or from the requests in each driver.

        What counts is their peak in the last tick, and how many there are now.
        """
        full = self._has_full_queue(trace, topology) if self._sleeps is None else self._has_slept
        self._left = STAY_TICKS if full else max(0, self._left - 1)
        return self._left > 0 if self.wanted is None else self.wanted

    def _has_full_queue(self, trace: Table, topology: Topology) -> bool:
        if self._of is None or self._of[0] is not trace.rows or self._of[1] is not topology:
            self._of = trace.rows, topology
            self._limits = np.array([_limit(topology, key) for key in trace.rows.keys], np.float64)
        # A scheduler admits more requests than the driver holds: its queue is full while some of them wait in it.
        return any(
            self._is_full(trace.column(name)) for name in ("in_driver_peak_most", "in_driver_peak", "in_flight_now")
        )

    def _is_full(self, requests: NDArray[np.uint64]) -> bool:
        return bool(((requests >= self._limits) & (requests < 1 << 31)).any())


def _limit(topology: Topology, key: str) -> float:
    """Return the number of requests a queue admits (queue/nr_requests); a further one waits for a tag."""
    device = topology.devices.get(key)
    return np.inf if device is None or not device.nr_requests else float(device.nr_requests)


_COUNTED = [TRACE.index(name) for name in ("reads", "writes", "others")]


class ExactCollector:
    """Reads the tracer of a supervisor; returns no tables while there is none.

    Read it after the disk table, which identifies the traced devices. When the tracer fails, the next reading reports
    an event and another tracer is opened in the background.
    """

    def __init__(
        self,
        supervisor: TracerSupervisor,
        disks: Callable[[], Rows],
        topology: Callable[[], Topology],
        procfs: str = "/proc",
        in_flight: Callable[[], NDArray[np.uint64]] = lambda: np.zeros(0, np.uint64),
    ) -> None:
        self._supervisor = supervisor
        self._disks = disks
        self._in_flight = in_flight
        self._topology = topology
        self._procfs = procfs
        self._session: _Session | None = None
        self._tag_wait = TagWaitSwitch()

    @property
    def delivers(self) -> bool:
        """Whether the last reading had exact counters."""
        return self._session is not None

    @property
    def counts_busy(self) -> bool:
        """Whether the last reading had busy time: the programs for old kernels count none."""
        return self._session is not None and self._session.counts_busy

    def ask_tag_wait(self, on: bool | None) -> None:
        """Time waits for tags from the next tick on, or not; None: automatic, while a queue is full."""
        self._tag_wait.wanted = on

    def read(self) -> Reading:
        """Read all counters and histograms."""
        tracer = self._supervisor.program
        if tracer is None:
            self._session = None
            return Reading(events=self._supervisor.take_events())
        if self._session is None or self._session.tracer is not tracer:
            self._session = _Session(tracer, self._tag_wait, self._procfs)
        try:
            reading = self._session.read(self._disks(), self._topology(), self._in_flight())
        except OSError as error:
            self._session = None
            self._supervisor.lose(words_of(error))
            return Reading(events=self._supervisor.take_events())
        return Reading(reading.tables, reading.histograms, (*self._supervisor.take_events(), *reading.events))

    def close(self) -> None:
        """Detach everything; may be called twice."""
        self._supervisor.close()


class _Session:
    """State that is reset with each new tracer."""

    def __init__(self, tracer: Tracer, tag_wait: TagWaitSwitch, procfs: str) -> None:
        self.tracer = tracer
        self._tag_wait = tag_wait
        self._watches_tags = False
        self._members = TracedMembers()
        self._groups = TracedGroups()
        self._processes = ProcessTables(procfs)
        self._losses = LossReporter()
        self._begun_before = BegunBefore()
        self._bio_based: frozenset[str] | None = None
        self.counts_busy = True
        self._started_ns = time.monotonic_ns()

    def read(self, disks: Rows, topology: Topology, in_flight: NDArray[np.uint64]) -> Reading:
        tracer = self.tracer
        self._follow_bio_based(topology)
        values, clock_ns = tracer.read(), time.monotonic_ns()
        if not self._members.is_current(tracer.generation, disks):
            self._members.update(tracer.generation, disks, tracer.names(), tracer.numbers(), values)
        trace = Table(TRACE, self._members.rows, self._members.of(values))
        self._begun_before.add_to(trace, disks, in_flight, clock_ns)
        self.counts_busy = bool((trace.column("busy_ns") != MISSING).all())
        losses = tracer.losses()
        self._tag_wait.note_sleeps(losses.get("tag_sleeps"))
        state = TAG_WAITS_TIMED * self._watches_tags | NO_TAG_WAITS * self._tag_wait.was_quiet
        clock = tracer_table(self._started_ns, clock_ns, losses, state)
        tables = {
            TRACE.name: trace,
            TRACE_GROUP.name: self._groups.read(tracer, topology.graph),
            TRACER.name: clock,
            SLOW_IO.name: slow_table(*tracer.slowest(), tracer.numbers()),
        }
        histograms = {TRACE.name: self._histograms(tracer.cells())}
        unknown = losses.get("without_process", 0)
        found = self._processes.read(tracer.processes(), self._members.position, self._members.rows, unknown)
        tables |= found[0]
        histograms[PROCESS_IO.name] = found[1]
        self._switch_tag_wait(on=self._tag_wait.decide(trace, topology))
        ios = int(trace.values[:, _COUNTED].sum())
        return Reading(tables, histograms, self._losses.report(losses, ios, clock_ns))

    def _histograms(self, cells: Cells) -> Histograms:
        row, series, bucket, count = cells
        position = self._members.position(row)
        kept = np.flatnonzero(position >= 0)
        if len(kept) < len(row):
            position, series, bucket, count = position[kept], series[kept], bucket[kept], count[kept]
        return Histograms(SCALE, self._members.rows, TRACE_SERIES, position.astype(np.uint32), series, bucket, count)

    def _follow_bio_based(self, topology: Topology) -> None:
        """Attach or detach the probes of devices without a driver queue when such devices were added or removed."""
        there = topology.bio_based
        if self._bio_based is not None and there != self._bio_based:
            self.tracer.rescan()
        if topology.devices:
            self._bio_based = there

    def _switch_tag_wait(self, *, on: bool) -> None:
        if on != self._watches_tags:
            self.tracer.watch_tag_wait(on)
            self._watches_tags = on
