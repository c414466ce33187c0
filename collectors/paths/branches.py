"""The device graph as a tree expanded on demand: HBA port, target port, path, LUN, devices built on it, mounts."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from collectors.graph import Layer, MountedFilesystem, Path, layers_above, rootless_layers
from collectors.model import Topology
from collectors.paths.groups import NO_TARGET, lun_name, port_name, target_name, way_key
from collectors.topology.ports import natural
from engine.text import safe_text

_BETWEEN = "\n"
"""Separator of the steps in a node's key; keys of devices contain no line break."""


class NodeKind(StrEnum):
    """Kind of a node."""

    PORT = "HBA port"
    TARGET = "target port"
    PATH = "path"
    LUN = "LUN"
    LAYER = "layer"
    MOUNT = "mount"
    REST = "rest"


class Node(Struct, frozen=True):
    """One element at one position of the tree; a LUN appears below each of its paths."""

    key: str
    """Key of this position: all steps from the root."""
    kind: NodeKind
    of: str
    """Key of the element; for a target port that of the connection from the HBA port above it."""
    name: str
    """Safe to print."""
    branch: bool
    """Whether it has children."""


class Branches:
    """Lookup tables of one topology; nodes are made when their branch is expanded."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        graph = topology.graph
        self._targets = {target.key: target for target in graph.targets}
        self._ways: dict[str, dict[str, list[Path]]] = {}
        for path in graph.paths:
            self._ways.setdefault(path.port, {}).setdefault(path.target, []).append(path)
        self._paths = {path.key: path for path in graph.paths}
        self._above = layers_above(graph)
        self._mounts: dict[str, list[MountedFilesystem]] = {}
        for mount in graph.mounts:
            self._mounts.setdefault(mount.key, []).append(mount)
        self._way_paths: dict[str, list[Path]] = {}

    def roots(self) -> Iterator[Node]:
        """Yield the HBA ports, those without paths last, then devices on no port."""
        graph = self._topology.graph
        for port in sorted(graph.ports, key=lambda port: port.key not in self._ways):
            yield Node(port.key, NodeKind.PORT, port.key, port_name(port), port.key in self._ways)
        if "" in self._ways:
            yield Node("no port", NodeKind.PORT, "", "on no HBA port that is known", branch=True)
        if any(True for _ in self._rest("")):
            yield Node("virtual", NodeKind.REST, "", "virtual devices: loop, zram and others", branch=True)

    def children(self, node: Node) -> Iterator[Node]:
        """Yield the children of a node."""
        if not node.branch:
            return
        if node.kind is NodeKind.PORT:
            yield from self._of_port(node)
        elif node.kind is NodeKind.TARGET:
            yield from (self._path(node, path) for path in self._of_way(node.of))
        elif node.kind is NodeKind.PATH:
            yield self._lun(node, self._paths[node.of].lun)
        elif node.kind is NodeKind.REST:
            yield from self._rest(node.key)
        else:
            yield from self._on(node)

    def _of_port(self, node: Node) -> Iterator[Node]:
        """Yield target ports; if the target is the port itself or unknown, its paths directly."""
        ports = {port.key: port.name for port in self._topology.graph.ports}
        for target, paths in sorted(self._ways.get(node.of, {}).items(), key=lambda way: natural(way[0])):
            far = self._targets.get(target)
            if far is None or far.name == ports.get(node.of):
                yield from (self._path(node, path) for path in paths)
                continue
            way = way_key(node.of, target)
            yield Node(_step(node, way), NodeKind.TARGET, way, target_name(far) or NO_TARGET, branch=True)

    def _of_way(self, way: str) -> list[Path]:
        if not self._way_paths:
            for path in self._paths.values():
                self._way_paths.setdefault(way_key(path.port, path.target), []).append(path)
        return self._way_paths.get(way, [])

    def _path(self, above: Node, path: Path) -> Node:
        """Make the node of a path; a disk that is its own only path is also its LUN."""
        if path.lun == path.key:
            return self._lun(above, path.lun)
        name = " ".join(filter(None, (path.name, path.address)))
        return Node(_step(above, path.key), NodeKind.PATH, path.key, safe_text(name), branch=True)

    def _lun(self, above: Node, key: str) -> Node:
        return Node(_step(above, key), NodeKind.LUN, key, lun_name(key, self._topology), self._bears(key))

    def _bears(self, key: str) -> bool:
        return bool(self._above.get(key) or self._mounts.get(key))

    def _on(self, node: Node) -> Iterator[Node]:
        """Yield mounts of a device, then devices built on it; a device built on itself is not followed."""
        for mount in self._mounts.get(node.of, ()):
            key = _step(node, mount.point)
            yield Node(key, NodeKind.MOUNT, node.of, safe_text(f"{mount.point} ({mount.filesystem})"), branch=False)
        for layer in self._above.get(node.of, ()):
            yield self._layer(node, layer)

    def _layer(self, above: Node, layer: Layer) -> Node:
        name = f"{layer.name} {layer.label}" if layer.label and layer.label != layer.name else layer.name
        circular = layer.key in above.key.split(_BETWEEN)
        name = f"{name} is built on itself" if circular else f"{name} {layer.kind}"
        branch = self._bears(layer.key) and not circular
        return Node(_step(above, layer.key), NodeKind.LAYER, layer.key, safe_text(name), branch)

    def _rest(self, above: str) -> Iterator[Node]:
        """Yield LUNs without a path, except those of size 0, and layers built on no known device."""
        root = Node(above, NodeKind.REST, "", "", branch=True)
        graph = self._topology.graph
        for lun in graph.luns:
            device = self._topology.devices.get(lun.key)
            if not graph.paths_of[lun.key] and (device is None or device.size_bytes != 0):
                yield self._lun(root, lun.key)
        yield from (self._layer(root, layer) for layer in rootless_layers(graph))


def _step(above: Node, key: str) -> str:
    return f"{above.key}{_BETWEEN}{key}"
