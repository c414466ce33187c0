"""What is read of paths, HBA ports and tape drives beside the block counters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from collectors.kernel import path_errors, port_errors
from collectors.kernel.group_watch import GroupWatch, start_group_watch
from collectors.kernel.inventory import Inventory
from collectors.kernel.path_errors import PathErrors, path_error_events
from collectors.kernel.port_errors import PortErrors, port_error_events
from collectors.kernel.slow_counters import SlowCounters
from collectors.kernel.tape import TapeCollector
from collectors.model import Table, Tier
from collectors.sources.reading import Collector
from collectors.topology.graph import Graph


@dataclass(frozen=True, slots=True)
class PortReaders:
    """Tapes, error counters, and looks at whole ports where these may be used."""

    tapes: TapeCollector
    errors: tuple[SlowCounters, ...]
    groups: tuple[GroupWatch, ...]
    """None where only counters may be used, or no thread can be started."""

    @classmethod
    def start(
        cls,
        sysfs: str,
        disks: Callable[[], Table | None],
        inventory: Inventory,
        tier: Tier,
        *,
        fabric_counters: bool = True,
    ) -> PortReaders:
        """Start the threads.

        Args:
            sysfs: where to read.
            disks: the latest DISK table.
            inventory: what hangs on what.
            tier: the best that may be used.
            fabric_counters: whether drivers of FC, SAS and NVMe ports may be asked for theirs.
        """

        def graph() -> Graph:
            return inventory.topology.graph

        tell = path_error_events(lambda: inventory.topology.devices)
        errors = [SlowCounters("path errors", graph, PathErrors(sysfs).take, path_errors.PACE, tell)]
        if fabric_counters:
            take = PortErrors(sysfs).take
            errors.append(SlowCounters("port errors", graph, take, port_errors.PACE, port_error_events))
        groups = _start_groups(sysfs, disks, graph) if tier >= Tier.SAMPLED else ()
        return cls(TapeCollector(sysfs), tuple(errors), groups)

    @property
    def collectors(self) -> tuple[Collector, ...]:
        """All of them."""
        return self.tapes, *self.errors, *self.groups

    @property
    def cpu_ns(self) -> int:
        """CPU time of all threads."""
        return sum(one.cpu_ns for one in self.errors) + sum(one.cpu_ns for one in self.groups)


def _start_groups(sysfs: str, disks: Callable[[], Table | None], graph: Callable[[], Graph]) -> tuple[GroupWatch, ...]:
    try:
        return (start_group_watch(sysfs, disks, graph),)
    except OSError:
        return ()
