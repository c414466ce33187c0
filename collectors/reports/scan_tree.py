"""The device graph as a tree of text: HBA ports with their targets, then every LUN with its paths and its stack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from collectors.graph import Graph, Layer, Lun, Path, Port, Tape, TargetPort, layers_above, rootless_layers
from collectors.kernel.device_ids import plain_wwid
from collectors.kernel.hotplug_changes import size_text
from collectors.model import Device, Topology
from collectors.paths.queueing import without_paths
from collectors.paths.state import PathLevel, access_mix, state_of
from collectors.topology.ports import natural
from engine.text import safe_text


def tree_lines(topology: Topology, uses: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """Yield the lines; everything from outside is made safe to print.

    Args:
        topology: what is shown.
        uses: what uses LUNs or anything that shares their bytes, in words, by the keys of the LUNs.
    """
    for line in _Tree(topology, uses).lines():
        yield safe_text(line)


class _Tree:
    """Lookup tables of one graph."""

    def __init__(self, topology: Topology, uses: Mapping[str, str]) -> None:
        self._uses = uses
        self._devices = topology.devices
        self._graph: Graph = topology.graph
        self._ports = {port.key: port for port in self._graph.ports}
        self._targets = {target.key: target for target in self._graph.targets}
        self._above = layers_above(self._graph)
        self._mounts: dict[str, list[str]] = {}
        for mount in self._graph.mounts:
            self._mounts.setdefault(mount.key, []).append(f"{mount.point} ({mount.filesystem})")

    def lines(self) -> Iterator[str]:
        ways = Counter((path.port, path.target) for path in self._graph.paths)
        for port in self._graph.ports:
            yield _port_line(port)
            mine = [(target, count) for (its_port, target), count in ways.items() if its_port == port.key]
            for target, count in sorted(mine, key=lambda way: natural(way[0])):
                far = self._targets.get(target)
                of = f" of {far.array}" if far is not None and far.transport.startswith("nvme-") and far.array else ""
                paths = "1 path" if count == 1 else f"{count:,} paths"
                own = "its own disk" if count == 1 else "its own disks"
                yield f"  {own if far is None or far.name == port.name else _target_name(far) + of}  {paths}"
        for lun in sorted(self._graph.luns, key=lambda lun: natural(lun.name)):
            device = self._devices.get(lun.key)
            if device is None or device.size_bytes != 0:
                yield ""
                yield from self._lun(lun)
        yield from self._rootless()
        yield from self._tapes()
        if self._graph.notices:
            yield ""
            yield from (f"! {notice}" for notice in self._graph.notices)

    def _lun(self, lun: Lun) -> Iterator[str]:
        yield self._lun_line(lun)
        if lun.features or lun.no_path_retry:
            yield f"  {_map_words(lun)}"
        paths = [self._graph.paths[position] for position in self._graph.paths_of[lun.key]]
        yield from self._path_lines(sorted(paths, key=lambda path: natural(path.address)))
        yield from self._stack(lun.key, "  ", frozenset({lun.key}))

    def _lun_line(self, lun: Lun) -> str:
        device = self._devices.get(lun.key)
        paths = [self._graph.paths[position] for position in self._graph.paths_of[lun.key]]
        parts = [_named(lun.name, device)]
        if device is not None:
            # A map has no vendor and model; its paths do.
            maker = next((made for one in (device, *map(self._device, paths)) if (made := _maker(one))), "")
            parts += [_size(device.size_bytes), maker, plain_wwid(device.persistent_id)]
        if lun.multipath:
            usable = sum(path.usable for path in paths)
            mix = f", {access}" if (access := access_mix(paths)) else ""
            policy = f", {lun.policy}" if lun.policy else ""
            parts.append(f"{usable} of {len(paths)} paths usable{mix}{policy}")
        return "  ".join(filter(None, [*parts, *self._mounts.get(lun.key, ()), self._use(lun)]))

    def _use(self, lun: Lun) -> str:
        """Say what uses a LUN, unless that is what is shown above it."""
        words = self._uses.get(lun.key, "")
        shown = self._mounts.get(lun.key) or self._above.get(lun.key)
        return words if words and not shown else ""

    def _tapes(self) -> Iterator[str]:
        for tape in self._graph.tapes:
            yield ""
            maker = f"{tape.vendor} {tape.model}".strip()
            parts = [
                f"tape {tape.name}",
                tape.label,
                maker,
                tape.persistent_id,
                tape.address,
                self._way(tape),
                tape.state,
            ]
            yield "  ".join(filter(None, parts))

    def _way(self, end: Path | Tape) -> str:
        port, target = self._ports.get(end.port), self._targets.get(end.target)
        near = (port.label or port.name) if port else ""
        if target is None or (port is not None and target.name == port.name):
            return near
        return f"{near or 'no port'} -> {target.label or target.name}"

    def _device(self, path: Path) -> Device | None:
        return self._devices.get(path.key)

    def _path_lines(self, paths: Sequence[Path]) -> Iterator[str]:
        """Yield the paths of a LUN, with their names in columns."""
        cells = [(path.name, path.address, self._way(path)) for path in paths]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for path, named in zip(paths, cells, strict=True):
            columns = (cell.ljust(width) for cell, width in zip(named, widths, strict=True) if width)
            mark = "! " if state_of(path).level >= PathLevel.MARGINAL else "  "
            yield "  ".join((f"{mark}path {next(columns)}", *columns, *self._path_words(path))).rstrip()

    def _path_words(self, path: Path) -> Iterator[str]:
        words = [path.state, path.access, path.map_state]
        if path.marginal:
            words.append("marginal")
        if path.group is not None:
            words.append(f"group {path.group} {path.group_state}".rstrip())
        if path.priority is not None:
            words.append(f"prio {path.priority}")
        if path.weight is not None and path.weight != 1:
            words.append(f"weight {path.weight}")
        if path.preferred:
            words.append("preferred")
        if path.failures:
            words.append(f"failed {path.failures} times")
        if path.queue_limit is not None:
            words.append(f"limit {path.queue_limit}")
        if path.port_group is not None:
            words.append(f"port group {path.port_group}")
        if path.target_port:
            words.append(f"to {path.target_port}")
        if path.checker:
            words.append(f"checker {path.checker} {path.checker_state}".rstrip())
        yield from filter(None, words)

    def _stack(self, key: str, indent: str, seen: frozenset[str]) -> Iterator[str]:
        """Yield the devices built on a device; one that is built on itself is named once."""
        for layer in self._above.get(key, ()):
            if layer.key in seen:
                yield f"{indent}{layer.name}  built on itself"
                continue
            yield indent + self._layer(layer)
            yield from self._stack(layer.key, f"{indent}  ", seen | {layer.key})

    def _layer(self, layer: Layer) -> str:
        name = f"{layer.label} ({layer.name})" if layer.label else layer.name
        parts = [layer.kind, name, _size(layer.size_bytes), *self._mounts.get(layer.key, ())]
        return "  ".join(filter(None, parts))

    def _rootless(self) -> Iterator[str]:
        for layer in rootless_layers(self._graph):
            yield ""
            yield f"{self._layer(layer)}  on nothing that is known"
            yield from self._stack(layer.key, "  ", frozenset({layer.key}))


def _map_words(lun: Lun) -> str:
    """Write the configuration of a map as `multipath -ll` names it."""
    parts = (
        f"features {lun.features}" if lun.features else "",
        f"hwhandler {lun.hw_handler}" if lun.hw_handler else "",
        f"no_path_retry {lun.no_path_retry}" if lun.no_path_retry else "",
        f"failback {lun.failback}" if lun.failback else "",
        f"all paths down: {without_paths(lun).text}",
    )
    return "  ".join(filter(None, parts))


def _port_line(port: Port) -> str:
    others = f"with {', '.join(port.members[1:])}" if len(port.members) > 1 else ""
    limit = f"limit {port.queue_limit}" if port.queue_limit is not None else ""
    parent = port.parent if port.parent != port.address else ""
    return "  ".join(
        filter(
            None,
            [
                port.name,
                port.label,
                port.transport,
                port.driver,
                port.address,
                parent,
                others,
                port.state,
                port.speed,
                limit,
                f"serial {port.serial}" if port.serial else "",
                f"subsystem {port.subsystem}" if port.subsystem else "",
                f"host {port.host_nqn}" if port.host_nqn else "",
            ],
        )
    )


def _target_name(target: TargetPort) -> str:
    return f"{target.label} ({target.name})" if target.label else target.name


def _maker(device: Device | None) -> str:
    return "" if device is None else f"{device.vendor} {device.model}".strip()


def _named(name: str, device: Device | None) -> str:
    return f"{device.friendly_name} ({name})" if device is not None and device.friendly_name else name


def _size(size_bytes: int | None) -> str:
    return "" if size_bytes is None else size_text(size_bytes)
