"""Readers of a live source besides the block counters, most of them with threads of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from collectors.all_subjects import SUBJECTS
from collectors.kernel.hotplug import HotplugMonitor
from collectors.model import Tier
from collectors.paths.watch import PathWatch
from collectors.sampling.programs import FreezeProgram, NfsProgram, ThrottleProgram
from collectors.sampling.reading import Collector
from collectors.sampling.reading_settings import ReadingSettings
from collectors.subject import SampledHost
from collectors.tables.block.counters import BlockCollector
from collectors.tables.host.facts import read_host_facts
from collectors.topology.inventory import Inventory
from collectors.tune_changes import TuneChangesCollector


@runtime_checkable
class Sampler(Protocol):
    """A collector whose samples are not needed while exact time is available."""

    paused: bool
    """Whether it takes no samples."""

    @property
    def cpu_ns(self) -> int:
        """CPU time that it has used so far."""


class HostReaders(Struct, frozen=True):
    """Hot-plug, the device graph, changes of tunables, the readers of all subjects, and the comparison of paths."""

    hotplug: HotplugMonitor
    inventory: Inventory
    path_watch: PathWatch
    collectors: tuple[Collector, ...]
    """Collectors that are read at every tick."""
    samplers: tuple[Sampler, ...]

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
        open_throttle: Callable[[], ThrottleProgram] | None,
        open_nfs: Callable[[], NfsProgram] | None,
        open_freezes: Callable[[], FreezeProgram] | None = None,
    ) -> HostReaders:
        """Start all threads.

        `targets` are the paths that the load drives now; `open_throttle` attaches programs that time waits for limits,
        `open_nfs` the one that times NFS calls, `open_freezes` those that note when filesystems are frozen.
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
            open_throttle=open_throttle,
            open_nfs=open_nfs,
            open_freezes=open_freezes,
        )
        readers = tuple(reader for subject in SUBJECTS for reader in subject.readers(host))
        collectors: tuple[Collector, ...] = (hotplug, inventory, TuneChangesCollector(sysfs), *readers)
        # Asked here and not at every tick: isinstance() of a protocol takes as long as reading a file.
        samplers = tuple(one for one in readers if isinstance(one, Sampler))
        return cls(hotplug, inventory, PathWatch(), collectors, samplers)

    def pause_samplers(self, paused: bool) -> None:
        """Pause or resume samplers."""
        for one in self.samplers:
            one.paused = paused
