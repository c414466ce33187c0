"""Texts of rows for filters: state, alias, id, vendor, model, port of the device of each row."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

from collectors.filtering.fields import FilterField, texts_of
from collectors.graph import Graph, Path, paths_of, policies_of, ports_of
from collectors.model import Device, Rows, Topology
from collectors.paths.state import state_of
from collectors.tables.cgroup.schema import parts_of


@functools.lru_cache(maxsize=2)
def _target_names(graph: Graph) -> Mapping[str, str]:
    return {target.key: target.label or target.name for target in graph.targets}


_OF_DEVICE: dict[str, Callable[[Device], str]] = {
    "alias": lambda device: device.friendly_name,
    "id": lambda device: f"{device.persistent_id} {device.serial}".strip(),
    "vendor": lambda device: device.vendor,
    "model": lambda device: device.model,
    "kind": lambda device: device.kind,
    "scheduler": lambda device: device.scheduler,
}
_OF_PATHS: dict[str, Callable[[Sequence[Path], Graph], Iterable[str]]] = {
    "state": lambda paths, _: (max(map(state_of, paths), default=(0, ""))[1],),
    "port": lambda paths, graph: (_port_name(path, graph) for path in paths),
    "transport": lambda paths, graph: (_transport(path, graph) for path in paths),
    "target": lambda paths, graph: (_target_names(graph).get(path.target, "") for path in paths),
    "access": lambda paths, _: (path.access for path in paths),
    "policy": lambda paths, graph: (policies_of(graph).get(path.lun, "") for path in paths),
}
"""Texts of the paths of a row: its own, or all paths to a LUN, whose state is the worst."""


def _port_name(path: Path, graph: Graph) -> str:
    port = ports_of(graph).get(path.port)
    return "" if port is None else "+".join(port.members) or port.name


def _transport(path: Path, graph: Graph) -> str:
    port = ports_of(graph).get(path.port)
    return "" if port is None else port.transport


@functools.lru_cache(maxsize=2)
def _paths_of_luns(graph: Graph) -> Mapping[str, Sequence[Path]]:
    found: dict[str, list[Path]] = {}
    for path in graph.paths:
        found.setdefault(path.lun, []).append(path)
    return found


class DeviceTexts:
    """Facts of devices by row, and of the paths to them; each field is read when it is first asked for."""

    fields: tuple[FilterField, ...] = texts_of(*_OF_PATHS, *_OF_DEVICE)

    def __init__(self, keys: Sequence[str], topology: Topology) -> None:
        """Take the key of the device of each row; rows of others have no texts."""
        self._keys = keys
        self._topology = topology
        self._known: dict[str, Sequence[str]] = {}

    def texts(self, field_id: str) -> Sequence[str] | None:
        """Texts of a field, in lower case."""
        if field_id not in self._known:
            if field_id in _OF_DEVICE:
                self._known[field_id] = self._of_devices(_OF_DEVICE[field_id])
            elif field_id in _OF_PATHS:
                self._known[field_id] = self._of_paths(_OF_PATHS[field_id])
        return self._known.get(field_id)

    def _of_devices(self, of_device: Callable[[Device], str]) -> list[str]:
        devices = map(self._topology.devices.get, self._keys)
        return ["" if device is None else of_device(device).casefold() for device in devices]

    def _of_paths(self, of_paths: Callable[[Sequence[Path], Graph], Iterable[str]]) -> list[str]:
        graph = self._topology.graph
        own, of_luns = paths_of(graph), _paths_of_luns(graph)
        texts = []
        for key in self._keys:
            paths = of_luns.get(key) or ((own[key],) if key in own else ())
            found = list(of_paths(paths, graph))
            text = found[0] if len(found) == 1 else " ".join(dict.fromkeys(found)).strip()
            texts.append(text.casefold())
        return texts


@functools.lru_cache(maxsize=4)
def device_texts(rows: Rows, topology: Topology) -> DeviceTexts:
    """Texts of the rows of a table of devices or paths, cached by the pair of objects."""
    return DeviceTexts(rows.keys, topology)


@functools.lru_cache(maxsize=2)
def cgroup_texts(rows: Rows, topology: Topology) -> DeviceTexts:
    """Texts of the disk of each row of control groups, cached likewise."""
    return DeviceTexts([parts_of(key)[0] for key in rows.keys], topology)


class WithStates:
    """Texts in which the verdicts of a frame replace the state: sick, uneven, stalled."""

    fields = DeviceTexts.fields

    def __init__(self, texts: DeviceTexts, verdicts: Mapping[int, str]) -> None:
        """Take the texts, and the verdict by row."""
        self._texts = texts
        self._verdicts = verdicts

    def texts(self, field_id: str) -> Sequence[str] | None:
        """Texts of a field, in lower case."""
        texts = self._texts.texts(field_id)
        if field_id != "state" or texts is None or not self._verdicts:
            return texts
        changed = list(texts)
        for row, word in self._verdicts.items():
            changed[row] = word
        return changed
