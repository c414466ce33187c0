"""Everything a live source reads beside the block counters, most of it by threads of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from collectors.kernel.hotplug import HotplugMonitor
from collectors.model import Tier
from collectors.paths.watch import PathWatch
from collectors.registry import SUBJECTS
from collectors.sampling.reading import Collector
from collectors.sampling.settings import ReadingSettings
from collectors.subject import SampledHost
from collectors.tables.block.counters import BlockCollector
from collectors.tables.host.facts import read_host_facts
from collectors.topology.inventory import Inventory


@runtime_checkable
class Threaded(Protocol):
    """A collector with a thread of its own."""

    @property
    def cpu_ns(self) -> int:
        """CPU time the thread has used so far."""


@runtime_checkable
class Sampler(Protocol):
    """A collector whose looks are needless while there is exact time."""

    paused: bool
    """Whether it looks at nothing."""


@dataclass(frozen=True, slots=True)
class HostReaders:
    """Hot-plug, the device graph, and the readers of all subjects; what the paths of a LUN say about each other."""

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
        """What is read at every tick."""
        return self.hotplug, self.inventory, *self.subjects

    @property
    def cpu_ns(self) -> int:
        """CPU time of all threads."""
        return sum(one.cpu_ns for one in self.collectors if isinstance(one, Threaded))

    def pause_samplers(self, paused: bool) -> None:
        """Have samplers look at nothing, or go on."""
        for one in self.subjects:
            if isinstance(one, Sampler):
                one.paused = paused
