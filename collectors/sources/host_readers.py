"""Readers of a live source besides the block counters, and what happens when one fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from collectors.kernel.hotplug import HotplugMonitor
from collectors.model import Tier
from collectors.paths.watch import PathWatch
from collectors.registry import SUBJECTS
from collectors.sampling.reading import Collector, Reading
from collectors.sampling.settings import ReadingSettings
from collectors.subject import SampledHost
from collectors.tables.block.counters import BlockCollector
from collectors.tables.host.facts import read_host_facts
from collectors.topology.inventory import Inventory
from engine.events import Event, EventKind

FIRST_PAUSE_NS = 10_000_000_000
LONGEST_PAUSE_NS = 320_000_000_000


class Guarded:
    """Reads one collector; after a failure it pauses, longer each time, and reports it once."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._name = type(collector).__name__.removesuffix("Collector").lower()
        self._pause_ns = FIRST_PAUSE_NS
        self._resume_ns = 0
        self._failing = False

    def read(self, now_ns: int) -> Reading:
        """Read, or return an empty reading during a pause."""
        if self._failing and now_ns < self._resume_ns:
            return Reading()
        try:  # An error in one collector must not stop the others.
            reading = self._collector.read()
        except Exception as error:
            return self._rest(error, now_ns)
        self._failing, self._pause_ns = False, FIRST_PAUSE_NS
        return reading

    def close(self) -> None:
        """Close the collector."""
        self._collector.close()

    def _rest(self, error: Exception, now_ns: int) -> Reading:
        first = not self._failing
        self._failing, self._resume_ns = True, now_ns + self._pause_ns
        self._pause_ns = min(2 * self._pause_ns, LONGEST_PAUSE_NS)
        if not first:
            return Reading()
        text = f"{self._name}: {error or type(error).__name__}; left out until it can be read again"
        return Reading(events=(Event.now(EventKind.MONITOR, text, collector=self._name),))


@runtime_checkable
class Threaded(Protocol):
    """A collector with a thread of its own."""

    @property
    def cpu_ns(self) -> int:
        """CPU time the thread has used so far."""


@runtime_checkable
class Sampler(Protocol):
    """A collector whose samples are not needed while exact time is available."""

    paused: bool
    """Whether it takes no samples."""


@dataclass(frozen=True, slots=True)
class HostReaders:
    """Hot-plug, the device graph, the readers of all subjects, and the comparison of paths with their peers."""

    hotplug: HotplugMonitor
    inventory: Inventory
    subjects: tuple[Collector, ...]
    path_watch: PathWatch

    @classmethod
    def start(
        cls, procfs: str, sysfs: str, block: BlockCollector, tier: Tier, settings: ReadingSettings
    ) -> HostReaders:
        """Start all threads."""
        hotplug = HotplugMonitor(sysfs)
        facts = read_host_facts(procfs, tier, filter(None, [hotplug.notice]))
        inventory = Inventory(procfs, sysfs, facts, settings=settings)
        host = SampledHost(
            procfs,
            sysfs,
            disks=lambda: block.table,
            graph=lambda: inventory.topology.graph,
            devices=lambda: inventory.topology.devices,
            tier=tier,
            settings=settings,
        )
        readers = tuple(reader for subject in SUBJECTS for reader in subject.readers(host))
        return cls(hotplug, inventory, readers, PathWatch())

    @property
    def collectors(self) -> tuple[Collector, ...]:
        """Collectors read at every tick."""
        return self.hotplug, self.inventory, *self.subjects

    @property
    def cpu_ns(self) -> int:
        """CPU time of all threads."""
        return sum(one.cpu_ns for one in self.collectors if isinstance(one, Threaded))

    def pause_samplers(self, paused: bool) -> None:
        """Pause or resume samplers."""
        for one in self.subjects:
            if isinstance(one, Sampler):
                one.paused = paused
