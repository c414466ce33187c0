"""Labels of disks and targets."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from collectors.kernel.device_ids import both_names
from collectors.model import FrameTable, Topology


@functools.lru_cache(maxsize=4)
def disk_labels(topology: Topology) -> Mapping[str, str]:
    """By key: the kernel name, then the alias of the device; for a file its last path component."""
    return {
        key: both_names(device)
        for key, device in topology.devices.items()
        if device.friendly_name and device.friendly_name != device.name
    }


@functools.lru_cache(maxsize=2)
def short_labels(topology: Topology) -> Mapping[str, str]:
    """Likewise, short: without the kernel name of a map or volume (dm-7), which says little."""
    devices = topology.devices
    return {
        key: devices[key].friendly_name if devices[key].kind == "dm" else label
        for key, label in disk_labels(topology).items()
    }


def target_labels(targets: FrameTable | None) -> Mapping[str, str]:
    """By key: the label of a target, without the remark in brackets that scratch files have."""
    if targets is None:
        return {}
    return {key: name.partition(" (")[0] for key, name in zip(targets.rows.keys, targets.rows.names, strict=True)}


@functools.lru_cache(maxsize=4)
def luns_of_paths(topology: Topology) -> Mapping[str, str]:
    """By key of a path: the name of its LUN, if that has several paths."""
    luns = {lun.key: lun.name for lun in topology.graph.luns if lun.multipath}
    return {path.key: luns[path.lun] for path in topology.graph.paths if path.lun in luns}
