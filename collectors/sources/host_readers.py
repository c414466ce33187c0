"""Everything a live source reads beside the block counters, most of it by threads of its own."""

from __future__ import annotations

from dataclasses import dataclass

from collectors.kernel.block import BlockCollector
from collectors.kernel.host import HostCollector
from collectors.kernel.hostfacts import read_host_facts
from collectors.kernel.hotplug import HotplugMonitor
from collectors.kernel.inventory import Inventory
from collectors.kernel.port_readers import PortReaders
from collectors.kernel.processes import ProcessCollector
from collectors.model import Tier
from collectors.paths.watch import PathWatch
from collectors.sources.reading import Collector
from collectors.sources.reading_settings import ReadingSettings


@dataclass(frozen=True, slots=True)
class HostReaders:
    """Host, processes, device graph, hot-plug and ports, and what the paths of a LUN say about each other."""

    hotplug: HotplugMonitor
    processes: ProcessCollector
    inventory: Inventory
    load: HostCollector
    ports: PortReaders
    path_watch: PathWatch

    @classmethod
    def start(
        cls, procfs: str, sysfs: str, block: BlockCollector, tier: Tier, settings: ReadingSettings
    ) -> HostReaders:
        """Start all threads."""
        hotplug = HotplugMonitor(sysfs)
        facts = read_host_facts(procfs, tier, filter(None, [hotplug.notice]))
        inventory = Inventory(procfs, sysfs, facts, settings=settings)
        ports = PortReaders.start(sysfs, lambda: block.table, inventory, tier, fabric_counters=settings.fabric_counters)
        return cls(hotplug, ProcessCollector(procfs), inventory, HostCollector(procfs), ports, PathWatch())

    @property
    def collectors(self) -> tuple[Collector, ...]:
        """What is read at every tick."""
        return self.load, self.processes, self.hotplug, self.inventory, *self.ports.collectors
