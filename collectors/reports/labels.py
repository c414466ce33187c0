"""What rows of disks, paths and ports are called, and what a reader of JSON needs to join them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from collectors.kernel.device_names import both_names, label_of
from collectors.model import Rows, Topology
from collectors.topology.graph import Graph, Path, Port, Tape
from engine.text import safe_text


def row_labels(table: str, rows: Rows, topology: Topology) -> tuple[str, ...]:
    """Name each row: a disk by both its names, a path by its LUN, itself and its port, a port with its transport."""
    if table == "paths":
        return tuple(_path_label(key, name, topology) for key, name in zip(rows.keys, rows.names, strict=True))
    if table == "hbas":
        ports = _ports(topology.graph)
        return tuple(
            f"{name} {safe_text(ports[key].label) or ports[key].transport}" if key in ports else name
            for key, name in zip(rows.keys, rows.names, strict=True)
        )
    if table == "disks":
        named = zip(map(topology.devices.get, rows.keys), rows.names, strict=True)
        return tuple(name if device is None else both_names(device) for device, name in named)
    return rows.names


def row_facts(table: str, key: str, topology: Topology) -> dict[str, object]:
    """Facts of a disk, path, port or tape drive beside its figures."""
    if table == "disks":
        device = topology.devices.get(key)
        return {"label": safe_text(device.friendly_name if device is not None else "")}
    if table == "paths" and key in _paths(topology.graph):
        path = _paths(topology.graph)[key]
        port = _ports(topology.graph).get(path.port)
        return {
            "lun": safe_text(_lun_name(path, topology)),
            "port": safe_text(port.name) if port else "",
            "target": safe_text(path.target),
            "address": safe_text(path.address),
            "state": safe_text(path.state),
            "access": safe_text(path.access),
            "usable": path.usable,
            "marginal": path.marginal,
            "preferred": path.preferred,
            "group": path.group,
            "weight": path.weight,
            "failures": path.failures,
            "policy": safe_text(_policies(topology.graph).get(path.lun, "")),
        }
    if table == "tapes":
        return _tape_facts(key, topology.graph)
    if table == "hbas" and key in _ports(topology.graph):
        port = _ports(topology.graph)[key]
        return {
            "label": safe_text(port.label),
            "transport": port.transport,
            "members": list(map(safe_text, port.members)),
            "state": port.state,
        }
    return {}


def row_identity(table: str, key: str, topology: Topology) -> str:
    """Name what survives renaming: wwid, NGUID or serial where there is one, else the key."""
    if table == "tapes":
        tape = _tape(key, topology.graph)
        return safe_text((tape.persistent_id if tape else "") or key)
    device = topology.devices.get(key)
    return safe_text(device.persistent_id if device is not None and device.persistent_id else key)


def _tape(key: str, graph: Graph) -> Tape | None:
    return next((tape for tape in graph.tapes if tape.key == key), None)


def _tape_facts(key: str, graph: Graph) -> dict[str, object]:
    tape = _tape(key, graph)
    if tape is None:
        return {}
    port = _ports(graph).get(tape.port)
    return {
        "port": safe_text(port.name) if port else "",
        "address": safe_text(tape.address),
        "state": safe_text(tape.state),
        "model": safe_text(f"{tape.vendor} {tape.model}".strip()),
    }


def _path_label(key: str, name: str, topology: Topology) -> str:
    path = _paths(topology.graph).get(key)
    if path is None:
        return name
    port = _ports(topology.graph).get(path.port)
    lun = [] if path.lun == path.key else [_lun_name(path, topology)]
    return " ".join([*lun, name, *([port.label or port.name] if port else [])])


def _lun_name(path: Path, topology: Topology) -> str:
    return label_of(topology.devices.get(path.lun), "")


@lru_cache(maxsize=4)
def _paths(graph: Graph) -> Mapping[str, Path]:
    return {path.key: path for path in graph.paths}


@lru_cache(maxsize=4)
def _policies(graph: Graph) -> Mapping[str, str]:
    return {lun.key: lun.policy for lun in graph.luns}


@lru_cache(maxsize=4)
def _ports(graph: Graph) -> Mapping[str, Port]:
    return {port.key: port for port in graph.ports}
