"""What disks are called on the screen."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from collectors.kernel.device_names import both_names
from collectors.model import FrameTable, Topology


@functools.lru_cache(maxsize=4)
def disk_labels(topology: Topology) -> Mapping[str, str]:
    """By key: the kernel's name, then what the operator calls the device, of a file its last part."""
    return {
        key: both_names(device)
        for key, device in topology.devices.items()
        if device.friendly_name and device.friendly_name != device.name
    }


@functools.lru_cache(maxsize=2)
def short_labels(topology: Topology) -> Mapping[str, str]:
    """Likewise for where room is short: the kernel's name of a map or volume (dm-7) tells nothing."""
    devices = topology.devices
    return {
        key: devices[key].friendly_name if devices[key].kind == "dm" else label
        for key, label in disk_labels(topology).items()
    }


def target_labels(targets: FrameTable | None) -> Mapping[str, str]:
    """By key: what a target is called without the explanation in brackets that scratch files carry."""
    if targets is None:
        return {}
    return {key: name.partition(" (")[0] for key, name in zip(targets.rows.keys, targets.rows.names, strict=True)}


@functools.lru_cache(maxsize=4)
def luns_of_paths(topology: Topology) -> Mapping[str, str]:
    """By key of a path: the name of the LUN it is one of several ways to."""
    luns = {lun.key: lun.name for lun in topology.graph.luns if lun.multipath}
    return {path.key: luns[path.lun] for path in topology.graph.paths if path.lun in luns}
