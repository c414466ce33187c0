"""Readers of a live source besides the block counters, most of them with threads of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from collectors.tune_changes import TuneChangesCollector


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
    """Hot-plug, the device graph, changes of tunables, the readers of all subjects, and the comparison of paths."""

    hotplug: HotplugMonitor
    inventory: Inventory
    subjects: tuple[Collector, ...]
    path_watch: PathWatch
    tune_changes: TuneChangesCollector

    @classmethod
    def start(
        cls,
        procfs: str,
        sysfs: str,
        block: BlockCollector,
        tier: Tier,
        settings: ReadingSettings,
        *,
        targets: Callable[[], Sequence[str]] = tuple,
        traced: bool,
    ) -> HostReaders:
        """Start all threads.

        `targets` are the paths that the load drives now; `traced` says whether programs may be attached in the kernel.
        """
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
            targets=targets,
            traced=traced,
        )
        readers = tuple(reader for subject in SUBJECTS for reader in subject.readers(host))
        return cls(hotplug, inventory, readers, PathWatch(), TuneChangesCollector(sysfs))

    @property
    def collectors(self) -> tuple[Collector, ...]:
        """Collectors read at every tick."""
        return self.hotplug, self.inventory, self.tune_changes, *self.subjects

    @property
    def cpu_ns(self) -> int:
        """CPU time of all threads."""
        return sum(one.cpu_ns for one in self.collectors if isinstance(one, Threaded))

    def pause_samplers(self, paused: bool) -> None:
        """Pause or resume samplers."""
        for one in self.subjects:
            if isinstance(one, Sampler):
                one.paused = paused
