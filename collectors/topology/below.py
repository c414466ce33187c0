"""Disks, paths and HBA ports below devices: through partitions, mappings, arrays, loop devices and multipath."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from collectors.model import Device, Topology
from engine.hostfs.storage import loop_storage_numbers
from engine.hostfs.sysblock import look_up

Users = dict[str, list[str]]
"""Names of what is stored on a disk, path or port, or reached through it, in order, by its key."""


class Below(Struct, frozen=True):
    """What is below some named targets."""

    disks: Users = field(default_factory=dict)
    paths: Users = field(default_factory=dict)
    ports: Users = field(default_factory=dict)


class Descent:
    """Lookup tables of one topology, to go down from devices by their numbers.

    `loop_storage` names the numbers of the devices that the file of a loop device is stored on.
    """

    def __init__(
        self, topology: Topology, sysfs: Path, loop_storage: Callable[[Path, str], Iterable[int]] = loop_storage_numbers
    ) -> None:
        self._sysfs = sysfs
        self._loop_storage = loop_storage
        self._devices = topology.devices
        self._by_number = {os.makedev(one.major, one.minor): one.key for one in topology.devices.values()}
        self._by_name = {one.name: one.key for one in topology.devices.values()}
        self._layers = {layer.key: layer.below for layer in topology.graph.layers}
        self._graph = topology.graph

    def below(self, targets: Iterable[tuple[str, Iterable[int]]]) -> Below:
        """Find what is below targets, given by name and the numbers of their devices."""
        found = Below()
        paths = {path.key: path for path in self._graph.paths}
        for name, numbers in targets:
            for key in self._all_below(self._keys(numbers)):
                path = paths.get(key)
                if path is None or path.lun == key:
                    _add(found.disks, key, name)
                if path is not None:
                    _add(found.paths, key, name)
                    _add(found.ports, path.port, name)
        found.ports.pop("", None)
        return found

    def _all_below(self, start: Iterable[str]) -> Iterator[str]:
        """Yield devices and everything below them, from above to below, each once."""
        waiting, seen = list(start), set[str]()
        while waiting:
            key = waiting.pop(0)
            if key in seen:
                continue
            seen.add(key)
            yield key
            waiting += self._directly_below(key)

    def _directly_below(self, key: str) -> Iterator[str]:
        device = self._devices.get(key)
        yield from self._layers.get(key, ())
        yield from (self._graph.paths[at].key for at in self._graph.paths_of.get(key, ()))
        if device is not None:
            yield from (self._by_name[name] for name in device.slaves if name in self._by_name)
            yield from self._below_loop(device)

    def _below_loop(self, device: Device) -> Iterator[str]:
        if device.kind == "loop" and device.size_bytes:
            yield from self._keys(self._loop_storage(self._sysfs, device.name))

    def _keys(self, numbers: Iterable[int]) -> Iterator[str]:
        """Find devices by number; a partition is its disk, which has the counters."""
        for number in numbers:
            key = self._by_number.get(number)
            if key is None:
                found = look_up(self._sysfs, number)
                key = None if found is None else self._by_name.get(found.disk_folder.name.replace("!", "/"))
            if key is not None:
                yield key


def _add(users: Users, key: str, name: str) -> None:
    names = users.setdefault(key, [])
    if name not in names:
        names.append(name)


def rows_below(keys: Mapping[str, object], rows: Iterable[str]) -> list[int]:
    """Positions of the rows that are among keys, in the order of the keys."""
    at = {key: position for position, key in enumerate(rows)}
    return [at[key] for key in keys if key in at]
