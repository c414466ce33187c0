"""What the devices below a map, an array, a cache or a loop device do for each of its I/Os."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values, ratio
from collectors.model import Device, FrameTable, Rows, Topology

_RATIOS = {"ios_below_ratio": "iops", "bytes_below_ratio": "bytes_per_s"}
_NODES = "/dev/"


def layer_figures(disks: FrameTable, topology: Topology) -> dict[str, Values]:
    """Compare disks with those that they are built on; NaN for a disk without any, or whose members others use, too."""
    upper, member = _members(disks.rows, topology)
    figures = {}
    for field_id, quantity in _RATIOS.items():
        own, found = disks.columns[quantity], np.full(len(disks.rows), np.nan)
        if len(upper):
            below = np.bincount(upper, own[member], minlength=len(disks.rows)).astype(np.float64)
            found[upper] = ratio(below[upper], own[upper])
        figures[field_id] = found
    return figures


@lru_cache(maxsize=4)
def _members(rows: Rows, topology: Topology) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of disks and of what each is built on, one pair per member."""
    at = {device.name: rows.positions[key] for key, device in topology.devices.items() if key in rows.positions}
    pairs = [
        (at[name], at[member])
        for name, members in disks_below(topology).items()
        if name in at and all(member in at for member in members)
        for member in members
    ]
    upper, member = np.array(pairs, np.intp).reshape(-1, 2).T
    return upper, member


@lru_cache(maxsize=4)
def disks_below(topology: Topology) -> Mapping[str, tuple[str, ...]]:
    """Name the disks that each device is built on and has for itself, so that it causes all of their I/Os.

    A disk belongs to one device alone if that is the only user of it and of its partitions. Then the I/Os of a
    partition are those of its disk.
    """
    disk_of, users = _disks(topology), _users(topology)
    found = {}
    for device in topology.devices.values():
        below = tuple(dict.fromkeys(disk_of.get(name, name) for name in _built_on(device)))
        if below and all(users[name] == {device.name} for name in below):
            found[device.name] = below
    return found


def _built_on(device: Device) -> tuple[str, ...]:
    """Names of the disks and partitions a device is built on; of a loop device only a block device, not a file."""
    if device.kind == "loop" and device.friendly_name.startswith(_NODES):
        return (device.friendly_name.removeprefix(_NODES),)
    return device.slaves


def _disks(topology: Topology) -> Mapping[str, str]:
    """Name the disk of each partition."""
    names = {key: device.name for key, device in topology.devices.items()}
    partitions = (layer for layer in topology.graph.layers if layer.kind == "partition")
    return {layer.name: names[key] for layer in partitions for key in layer.below if key in names}


def _users(topology: Topology) -> Mapping[str, set[str]]:
    """Name what uses each disk or a partition of it: devices built on it, filesystems, swap."""
    disk_of, names = _disks(topology), {layer.key: layer.name for layer in topology.graph.layers}
    used = [(mount.key, mount.point) for mount in topology.graph.mounts]
    found = defaultdict[str, set[str]](set)
    for key, device in topology.devices.items():
        names[key] = device.name
        found[device.name].update(device.holders)
        for name in _built_on(device):
            found[disk_of.get(name, name)].add(device.name)
    for key, point in used:
        name = names.get(key, key)
        found[disk_of.get(name, name)].add(point)
    return found
