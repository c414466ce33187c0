"""Tables of exact time at every tick, as soon as a tracer is there."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from collectors.exact.attachment import Attachment
from collectors.exact.losses import LossReporter, tracer_table
from collectors.exact.members import TracedMembers
from collectors.exact.slow_table import slow_table
from collectors.exact.tag_wait import TagWaitSwitch
from collectors.exact.traced_groups import TracedGroups
from collectors.exact.tracer import SCALE, Cells, Tracer
from collectors.model import Histograms, Rows, Table, Topology
from collectors.sources.reading import Reading
from collectors.tables.block.trace_schema import SLOW_IO, TRACE, TRACE_GROUP, TRACE_SERIES, TRACER
from engine.errors import words_of

_COUNTED = [TRACE.index(name) for name in ("reads", "writes", "others")]


class ExactCollector:
    """Reads the tracer of an attachment; hands over nothing while there is none.

    It is to be read after the disk table, whose rows say who the traced devices are. When the tracer fails, the next
    reading says so and another one is opened beside the ticks.
    """

    def __init__(self, attachment: Attachment, disks: Callable[[], Rows], topology: Callable[[], Topology]) -> None:
        self._attachment = attachment
        self._disks = disks
        self._topology = topology
        self._session: _Session | None = None
        self._tag_wait = TagWaitSwitch()

    @property
    def delivers(self) -> bool:
        """Whether the last reading had exact counters."""
        return self._session is not None

    @property
    def cpu_ns(self) -> int:
        """CPU time spent on attaching."""
        return self._attachment.cpu_ns

    def ask_tag_wait(self, on: bool | None) -> None:
        """Watch waits for tags from the next tick on, or not; None leaves it to whether a queue is full."""
        self._tag_wait.wanted = on

    def read(self) -> Reading:
        """Read all counters and histograms."""
        tracer = self._attachment.tracer
        if tracer is None:
            self._session = None
            return Reading(events=self._attachment.take_events())
        if self._session is None or self._session.tracer is not tracer:
            self._session = _Session(tracer, self._tag_wait)
        try:
            reading = self._session.read(self._disks(), self._topology())
        except OSError as error:
            self._session = None
            self._attachment.lost(words_of(error))
            return Reading(events=self._attachment.take_events())
        return Reading(reading.tables, reading.histograms, (*self._attachment.take_events(), *reading.events))

    def close(self) -> None:
        """Detach everything; may be called twice."""
        self._attachment.close()


class _Session:
    """Everything that begins anew with another tracer."""

    def __init__(self, tracer: Tracer, tag_wait: TagWaitSwitch) -> None:
        self.tracer = tracer
        self._tag_wait = tag_wait
        self._watches_tags = False
        self._members = TracedMembers()
        self._groups = TracedGroups()
        self._losses = LossReporter()
        self._bio_based: frozenset[str] | None = None
        self._started_ns = time.monotonic_ns()

    def read(self, disks: Rows, topology: Topology) -> Reading:
        tracer = self.tracer
        self._follow_bio_based(topology)
        values, clock_ns = tracer.read(), time.monotonic_ns()
        if not self._members.is_current(tracer.generation, disks):
            self._members.update(tracer.generation, disks, tracer.names(), tracer.numbers(), values)
        trace = Table(TRACE, self._members.rows, self._members.of(values))
        losses = tracer.losses()
        clock = tracer_table(self._started_ns, clock_ns, losses, tag_wait=self._watches_tags)
        tables = {
            TRACE.name: trace,
            TRACE_GROUP.name: self._groups.read(tracer, topology.graph),
            TRACER.name: clock,
            SLOW_IO.name: slow_table(*tracer.slowest(), tracer.numbers()),
        }
        histograms = {TRACE.name: self._histograms(tracer.cells())}
        self._switch_tag_wait(on=self._tag_wait.decide(trace, topology))
        ios = int(trace.values[:, _COUNTED].sum())
        return Reading(tables, histograms, self._losses.report(losses, ios, clock_ns))

    def _histograms(self, cells: Cells) -> Histograms:
        row, series, bucket, count = cells
        place = self._members.place(row)
        kept = np.flatnonzero(place >= 0)
        if len(kept) < len(row):
            place, series, bucket, count = place[kept], series[kept], bucket[kept], count[kept]
        return Histograms(SCALE, self._members.rows, TRACE_SERIES, place.astype(np.uint32), series, bucket, count)

    def _follow_bio_based(self, topology: Topology) -> None:
        """Have the probes of devices without a driver queue put on or off when some came or went."""
        there = topology.bio_based
        if self._bio_based is not None and there != self._bio_based:
            self.tracer.rescan()
        if topology.devices:
            self._bio_based = there

    def _switch_tag_wait(self, *, on: bool) -> None:
        if on != self._watches_tags:
            self.tracer.watch_tag_wait(on)
            self._watches_tags = on
