"""Facts of the host of a load, and the settings of the disks below its targets, as its JSON document has them."""

from __future__ import annotations

from pathlib import Path

from collectors.model import Device, HostFacts, Topology
from collectors.reports.run_devices import Stored
from collectors.topology.below import Descent
from engine.text import safe_text

MOST_DISKS = 256

HOST_FIELDS = ("hostname", "kernel", "machine", "cpus", "cpu_model", "memory_bytes")
DISK_FIELDS = (
    *("kind", "friendly_name", "scheduler", "nr_requests", "queue_limit", "read_ahead_kb", "max_sectors_kb"),
    "write_cache",
    *("rotational", "iostats", "logical_block_bytes", "physical_block_bytes", "size_bytes", "vendor", "model"),
)
"""Fields of `Device`."""


def host_document(topology: Topology, load: Stored, sysfs: Path) -> dict[str, object]:
    """Write the facts of a host and of the disks below the targets of a load, from above to below.

    Files of loop devices are left alone: they may be on a storage that stalls.
    """
    below = Descent(topology, sysfs, lambda _sysfs, _name: ()).below(zip(load.targets, load.devices, strict=False))
    disks = [(topology.devices[key], targets) for key, targets in below.disks.items() if key in topology.devices]
    return {
        **_facts(topology.host),
        "disks": [_disk(device, targets) for device, targets in disks[:MOST_DISKS]],
    }


def _facts(host: HostFacts) -> dict[str, object]:
    return {
        **{name: _plain(getattr(host, name)) for name in HOST_FIELDS},
        "tier": host.tier.name.lower(),
        "notices": [safe_text(notice) for notice in host.notices],
    }


def _disk(device: Device, targets: list[str]) -> dict[str, object]:
    settings = {name: _plain(getattr(device, name)) for name in DISK_FIELDS}
    return {"name": safe_text(device.name), "targets": list(targets), **settings}


def _plain(value: object) -> object:
    return safe_text(value) if isinstance(value, str) else value
