"""The live source: this host, sampled on schedule."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Event as StopFlag
from typing import TYPE_CHECKING

from collectors.exact.live_tier import LiveTier
from collectors.model import Histograms, Rows, Sample, Step, Table, Tier, Topology
from collectors.paths.state import contradicted_paths
from collectors.sampling.reading import BACKGROUND_CPU, Collector, Guarded, Reading
from collectors.sampling.reading_settings import TIERS, ReadingSettings
from collectors.sampling.schedule import SECOND_NS, Clock, Schedule, SkipReporter, SystemClock
from collectors.tables.block.counters import BlockCollector
from collectors.tables.block.inflight import InflightWatch, start_watch
from collectors.tables.block.schema import DISK
from engine.errors import LunscopeError, UsageError
from engine.events import Event
from engine.replacing import replace

if TYPE_CHECKING:
    from collectors.alerts.service import AlertService
    from collectors.exact.tracer import Tracer
    from collectors.sources.host_readers import HostReaders

__all__ = ["Collector", "LiveSource", "Reading"]

MIN_INTERVAL_S = 0.1
MAX_INTERVAL_S = 86_400.0
FIRST_TOPOLOGY_S = 0.2
"""Longest wait of the first sample on a screen for the facts of devices; otherwise they come with the next one."""
WHOLE_TOPOLOGY_S = 60.0
"""Longest wait of the first printed or recorded sample, which should have the facts of all devices."""

_STOP_CHECK_S = 0.2


class LiveSource:
    """Samples this host; implements collectors.model.Source.

    `tier` is one of TIERS; "auto" is the best available. `extra_collectors` are read at every tick after the disks and
    closed with the source. The first sample waits up to `patience_s` for exact counters (with tier "exact" up to 30 s,
    which `say` is told after two) and up to `first_topology_s` for the device graph; with `sample_at_once` another one
    is taken before, when the source is created, against which nothing is derived. `settings` are those of the operator
    for reading. Events of `alerts` are part of the samples, and so of a recording; the source closes it.
    """

    seekable = False

    def __init__(
        self,
        interval_s: float = 1.0,
        procfs: str | Path = "/proc",
        sysfs: str | Path = "/sys",
        tier: str = "auto",
        extra_collectors: Sequence[Collector] = (),
        *,
        clock: Clock | None = None,
        first_topology_s: float = FIRST_TOPOLOGY_S,
        sample_at_once: bool = False,
        patience_s: float = 0.0,
        say: Callable[[str], None] = lambda _text: None,
        open_tracer: Callable[[str, str], Tracer] | None = None,
        settings: ReadingSettings | None = None,
        alerts: AlertService | None = None,
    ) -> None:
        """Open the readers; nothing is read yet, except with `sample_at_once`.

        Raises:
            UsageError: the interval or tier is invalid.
            LunscopeError: the kernel's block counters cannot be read, or the requested tier is unavailable.
        """
        if not MIN_INTERVAL_S <= interval_s <= MAX_INTERVAL_S:
            raise UsageError(f"interval {interval_s:g} s: give {MIN_INTERVAL_S:g} s to 1 day")
        self.interval_s = interval_s
        self._clock = clock or SystemClock()
        self._roots = str(procfs), str(sysfs)
        self._watch = _start_watch(tier, *self._roots)
        self._block = BlockCollector(*self._roots, self._watch)
        _probe(self._block)
        self._exact = LiveTier(
            tier,
            patience_s,
            lambda: (open_tracer or _open_tracer)(*self._roots),
            lambda: self._block.rows,
            self._topology,
            procfs=str(procfs),
            in_flight=lambda: self._block.in_flight,
            say=say,
            most_cost_pct=(settings or ReadingSettings()).most_cost_pct,
        )
        self._extra = extra_collectors
        self._host: HostReaders | None = None
        self._skips = SkipReporter()
        self._collectors = [Guarded(collector) for collector in (self._block, *extra_collectors)]
        self._scanned_rows: Rows | None = None
        self._scanned_changes = 0
        self._disks: Table | None = None
        self._background_ns = BACKGROUND_CPU.used_ns
        self._settings = settings or ReadingSettings()
        self._alerts = alerts
        self._first_topology_s = first_topology_s
        self._first = self._sample_now() if sample_at_once else None

    def steps(self, stop: StopFlag) -> Iterator[Step]:
        """Yield a first step at once, one soon after, then one per interval until `stop` is set; more on its request.

        The threads start here and not before, so that they do not compete with the drawing of the first screen. With
        `sample_at_once` there is no screen: the threads started with the source.
        """
        host = self._start()
        if self._first is not None:
            yield Step(None, self._first)
            self._first = None
        self._exact.before_first_sample(stop)
        self._await_topology(host, stop, self._first_topology_s)
        schedule = Schedule(self._clock.monotonic_ns(), round(self.interval_s * SECOND_NS))
        due_ns, skipped, previous, requested = schedule.start_ns, 0, None, False
        while not stop.is_set():
            step = Step(previous, self._sample(host, due_ns, skipped))
            if self._alerts is not None:
                step = self._alerts.step(step)
            yield step
            self._exact.after_first_sample()
            previous, skipped = step.current, 0
            interval_ns = round(self.interval_s * SECOND_NS)
            if interval_ns != schedule.interval_ns:
                schedule = Schedule(self._clock.monotonic_ns(), interval_ns)
                due_ns = schedule.start_ns + interval_ns
            elif not requested:
                due_ns, skipped = schedule.next(due_ns, self._clock.monotonic_ns())
            # A sample on request leaves the scheduled ones where they are.
            requested = self._clock.wait(stop, max(0, due_ns - self._clock.monotonic_ns()) / SECOND_NS)

    def counters_now(self) -> Sample:
        """Read the disks without their facts, which take time: for a recording, so that its file has a sample at once.

        To be called before `steps`, which yields a complete sample first and derives nothing against this one.
        """
        from collectors.tables.host.facts import read_host_facts  # noqa: PLC0415 (as HostReaders)

        readings = [collector.read(self._clock.monotonic_ns()) for collector in self._collectors]
        return Sample(
            time_ns=self._clock.time_ns(),
            monotonic_ns=self._clock.monotonic_ns(),
            topology=Topology(host=read_host_facts(self._roots[0], self._lesser_tier)),
            tables={name: table for reading in readings for name, table in reading.tables.items()},
        )

    def close(self) -> None:
        """Stop all threads and close all collectors."""
        for collector in self._collectors:
            collector.close()
        self._exact.close()
        if self._alerts is not None:
            self._alerts.close()

    def set_interval(self, interval_s: float) -> None:
        """Sample at this interval from the step after the next on; the recorded times say what each interval was."""
        self.interval_s = min(max(interval_s, MIN_INTERVAL_S), MAX_INTERVAL_S)

    def watch_tag_wait(self, on: bool | None) -> None:
        """Time waits for free tags from the next tick on, or not; None: automatic, while a queue is full."""
        self._exact.collector.ask_tag_wait(on)

    def _start(self) -> HostReaders:
        if self._host is None:
            # What these need can wait until the first screen is drawn.
            from collectors.exact.tracer_supervisor import NFS_CALLS, THROTTLE, open_freezes  # noqa: PLC0415
            from collectors.sources.host_readers import HostReaders  # noqa: PLC0415

            self._host = HostReaders.start(
                *self._roots,
                self._block,
                self._lesser_tier,
                self._settings,
                targets=self._targets,
                open_throttle=partial(THROTTLE.open, *self._roots) if self._exact.wanted else None,
                open_nfs=partial(NFS_CALLS.open, *self._roots) if self._exact.wanted else None,
                open_freezes=partial(open_freezes, *self._roots) if self._exact.wanted else None,
            )
            collectors: tuple[Collector, ...] = (
                self._block,
                self._exact.collector,
                *self._host.collectors,
                *self._extra,
            )
            self._collectors = [Guarded(collector) for collector in collectors]
        return self._host

    def _targets(self) -> list[str]:
        """Files and devices that a load drives now, of the collectors that read one."""
        return [path for one in self._extra for path in getattr(one, "target_paths", ())]

    def _sample_now(self) -> Sample:
        """Take a sample before the file of a recording is created, so that no recording is empty."""
        host = self._start()
        self._await_topology(host, StopFlag(), FIRST_TOPOLOGY_S)
        return self._sample(host, self._clock.monotonic_ns(), 0)

    def _sample(self, host: HostReaders, due_ns: int, skipped: int) -> Sample:
        cpu_ns = time.thread_time_ns()
        time_ns, monotonic_ns = self._clock.time_ns(), self._clock.monotonic_ns()
        tables: dict[str, Table] = {}
        histograms: dict[str, Histograms] = {}
        events: list[Event] = list(self._skips.report(skipped, monotonic_ns))
        for collector in self._collectors:
            reading = collector.read(monotonic_ns)
            tables |= reading.tables
            histograms |= reading.histograms
            events += reading.events
        self._follow_topology(host)
        self._confirm_states(host, tables.get(DISK.name))
        self._pause_samplers(host)
        sample = Sample(
            time_ns=time_ns,
            monotonic_ns=monotonic_ns,
            topology=self._exact.with_tier(host.inventory.topology, self._lesser_tier),
            tables=tables,
            histograms=histograms,
            late_ns=max(0, monotonic_ns - due_ns),
        )
        all_events = (*events, *host.path_watch.compare(sample))
        self._exact.govern(sample)
        cost_ns = time.thread_time_ns() - cpu_ns + self._background_cost_ns(host)
        return replace(sample, events=all_events, cost_ns=cost_ns)

    def _confirm_states(self, host: HostReaders, disks: Table | None) -> None:
        """Read the states again of paths that complete I/O although their state is unusable."""
        before, self._disks = self._disks, disks
        names = frozenset() if disks is None else contradicted_paths(before, disks, host.inventory.topology.graph)
        if names:
            host.inventory.confirm(names)

    def _pause_samplers(self, host: HostReaders) -> None:
        """Pause the samplers while there are exact counters, of busy time, too."""
        enough = self._exact.delivers and self._exact.counts_busy
        if self._watch is not None:
            self._watch.paused = enough
        host.pause_samplers(enough)

    @property
    def _lesser_tier(self) -> Tier:
        """The tier of figures without exact counters."""
        return Tier.SAMPLED if self._watch else Tier.KERNEL

    def _topology(self) -> Topology:
        return Topology() if self._host is None else self._host.inventory.topology

    def _await_topology(self, host: HostReaders, stop: StopFlag, patience_s: float) -> None:
        """Scan the topology before the schedule starts, so that it delays no tick."""
        if self._scanned_rows is None:
            self._scanned_rows = self._block.rows
            host.inventory.request(self._scanned_rows)
        end_s = time.monotonic() + patience_s
        while not host.inventory.wait(min(_STOP_CHECK_S, patience_s)):
            if stop.is_set() or time.monotonic() >= end_s:
                return

    def _follow_topology(self, host: HostReaders) -> None:
        """Request a scan if rows were added or removed, or uevents announced changes."""
        changes = host.hotplug.changes
        if changes != self._scanned_changes:
            self._block.rescan()
        if changes != self._scanned_changes or self._block.rows is not self._scanned_rows:
            host.inventory.request(self._block.rows, host.hotplug.take_touched())
        self._scanned_changes, self._scanned_rows = changes, self._block.rows

    def _background_cost_ns(self, host: HostReaders) -> int:
        """CPU time that threads and samplers have used since the last call."""
        samplers = (*host.samplers, *([] if self._watch is None else [self._watch]))
        used_ns = BACKGROUND_CPU.used_ns + sum(sampler.cpu_ns for sampler in samplers)
        before, self._background_ns = self._background_ns, used_ns
        return self._background_ns - before


def _open_tracer(procfs: str, sysfs: str) -> Tracer:
    from collectors.exact.tracer_supervisor import open_tracer  # noqa: PLC0415 (as LiveTier)

    return open_tracer(procfs, sysfs)


def _start_watch(tier: str, procfs: str, sysfs: str) -> InflightWatch | None:
    if tier not in TIERS:
        raise UsageError(f"tier {tier!r}: give {', '.join(TIERS)}")
    if tier == "exact":
        from collectors.exact.tracer_supervisor import refusal_of  # noqa: PLC0415 (as LiveTier)

        refusal = refusal_of(procfs, sysfs)
        if refusal:
            raise LunscopeError(f"tier exact: {refusal}")
    if tier in {"kernel", "exact"}:
        return None
    try:
        return start_watch(sysfs)
    except OSError as error:
        if tier == "sampled":
            raise LunscopeError(
                f"tier sampled: {error.strerror}: raise the limit of processes, or give auto"
            ) from error
        return None


def _probe(block: BlockCollector) -> None:
    """Read once, so that wrong paths are reported at once and in one line."""
    try:
        block.read()
    except OSError as error:
        block.close()
        fix = "mount procfs and sysfs, or name them with --procfs and --sysfs"
        raise LunscopeError(f"{error.filename}: {error.strerror}: {fix}") from error
