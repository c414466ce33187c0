"""The current topology of a host."""

from __future__ import annotations

from pathlib import Path

from collectors.model import Topology
from collectors.sampling.settings import ReadingSettings
from collectors.tables.block.counters import BlockCollector
from collectors.tables.host.facts import read_host_facts
from collectors.topology.device_mapper import open_maps
from collectors.topology.scanner import TopologyScanner
from engine.errors import LunscopeError


def read_topology(procfs: Path, sysfs: Path, settings: ReadingSettings | None = None) -> Topology:
    """Scan once; `settings` has the operator's aliases.

    Raises:
        LunscopeError: neither procfs nor sysfs lists block devices there.
    """
    collector = BlockCollector(str(procfs), str(sysfs))
    try:
        rows = collector.read().tables["disk"].rows
    except OSError as error:
        fix = "mount procfs and sysfs, or name them with --procfs and --sysfs"
        raise LunscopeError(f"{error.filename}: {error.strerror}: {fix}") from error
    finally:
        collector.close()
    scanner = TopologyScanner(str(procfs), str(sysfs), open_maps(str(sysfs)), settings)
    devices, graph = scanner.scan(rows)
    return Topology(devices, read_host_facts(str(procfs)), graph)
