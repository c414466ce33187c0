"""What disks are called on the screen."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from collectors.model import Topology


@functools.lru_cache(maxsize=4)
def disk_labels(topology: Topology) -> Mapping[str, str]:
    """By key: the kernel's name, followed by what the operator calls the device where that is another."""
    return {
        key: f"{device.name} {device.friendly_name}"
        for key, device in topology.devices.items()
        if device.friendly_name and device.friendly_name != device.name
    }
