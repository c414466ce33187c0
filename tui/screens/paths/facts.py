"""Attributes of devices, paths and HBA ports, as titles and values that are safe to print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from collectors.graph import Path, Port, TargetPort, ports_of, targets_of
from collectors.kernel.device_ids import plain_wwid
from collectors.model import Device, Frame
from collectors.paths.groups import lun_name, policy_name, port_name
from collectors.paths.state import PathLevel, state_of
from engine.job.sizes import format_size
from engine.text import safe_text
from tui.screens.paths.sentences import luns_by_key, state_age

UNKNOWN = "-"


def facts_of(device: Device) -> Iterator[tuple[str, str]]:
    """Title and value of each attribute, safe to print; "-" if unknown."""
    yield "name", _text(device.name)
    yield "alias", _text(device.friendly_name)
    yield "kind", _text(device.kind)
    yield "model", _text(" ".join(word for word in (device.vendor, device.model) if word))
    yield "serial", _text(device.serial)
    yield "id", _text(device.persistent_id)
    if (wwid := plain_wwid(device.persistent_id)) != device.persistent_id:
        yield "wwid", _text(wwid)
    yield "number", f"{device.major}:{device.minor}, sequence {_number(device.diskseq)}"
    yield "size", UNKNOWN if device.size_bytes is None else format_size(device.size_bytes)
    yield (
        "blocks",
        f"logical {_number(device.logical_block_bytes)}, physical {_number(device.physical_block_bytes)}",
    )
    depth = "n/a" if device.queue_limit is None else device.queue_limit
    yield "limits", f"nr_requests {_number(device.nr_requests)}, queue_depth {depth}"
    yield "scheduler", _text(device.scheduler)
    yield "write cache", _text(device.write_cache)
    yield "flags", ", ".join(_flags(device)) or UNKNOWN
    yield "built on", _text(" ".join(device.slaves))
    yield "used by", _text(" ".join(device.holders))


def _flags(device: Device) -> Iterator[str]:
    if device.rotational is not None:
        yield "rotating" if device.rotational else "solid state"
    if device.read_only:
        yield "read only"
    if device.removable:
        yield "removable"
    if device.bio_based:
        yield "bio-based: has no request queue, only total time is known"
    if device.iostats is False:
        yield "iostats OFF: its numbers do not move"


def path_facts(path: Path, frame: Frame) -> Iterator[tuple[str, str]]:
    """Yield the route of a path, and its states in the kernel, the storage and the map."""
    graph = frame.topology.graph
    port, target = ports_of(graph).get(path.port), targets_of(graph).get(path.target)
    lun = luns_by_key(graph).get(path.lun)
    yield "name", safe_text(path.name)
    yield "LUN", "itself" if path.lun == path.key else lun_name(path.lun, frame.topology)
    yield "address", _text(path.address)
    yield "HBA port", port_name(port) if port else UNKNOWN
    yield "port at", _text(port.address or port.parent) if port else UNKNOWN
    yield "target port", _text(f"{target.name} {target.label}".rstrip()) if target else UNKNOWN
    yield "array", _text(target.array) if target else UNKNOWN
    yield "port name", _text(path.target_port)
    yield "port group", f"{_number(path.port_group)}, relative port {_number(path.relative_port)}"
    yield "controller", _text(path.controller)
    yield "policy", policy_name(lun) if lun else UNKNOWN
    yield "state", _text(path.state) + state_age(frame.states_age_s)
    yield "access", _text(path.access) + (", preferred" if path.preferred else "")
    yield "in the map", _text(path.map_state) + (", marginal" if path.marginal else "")
    yield "failures", _number(path.failures)
    yield "group", _number(path.group)
    yield "priority", _number(path.priority)
    yield "weight", _number(path.weight)
    yield "limit", _number(path.queue_limit)


def target_facts(target: TargetPort, frame: Frame) -> Iterator[tuple[str, str]]:
    """Yield attributes of a target port, and the numbers of its paths, LUNs and HBA ports."""
    paths = [path for path in frame.topology.graph.paths if path.target == target.key]
    levels = Counter(state_of(path).level for path in paths)
    yield "name", safe_text(f"{target.name} {target.label}".rstrip())
    yield "transport", _text(target.transport)
    yield "array", _text(target.array)
    yield "controller", _text(", ".join(dict.fromkeys(path.controller for path in paths if path.controller)))
    yield "paths", f"{len(paths):,}"
    yield "down", f"{levels[PathLevel.DOWN]:,}"
    yield "standby", f"{levels[PathLevel.STANDBY]:,}"
    yield "LUNs", f"{len({path.lun for path in paths}):,}"
    yield "HBA ports", f"{len({path.port for path in paths if path.port}):,}"


def port_facts(port: Port, frame: Frame) -> Iterator[tuple[str, str]]:
    """Yield attributes of a port, and the numbers of its paths, LUNs and targets."""
    paths = [path for path in frame.topology.graph.paths if path.port == port.key]
    levels = Counter(state_of(path).level for path in paths)
    yield "name", safe_text(f"{port.name} {port.label}".rstrip())
    yield "members", _text(" ".join(port.members))
    yield "transport", _text(port.transport)
    yield "driver", _text(port.driver)
    yield "address", _text(port.address)
    yield "part of", _text(port.parent)
    if port.subsystem:
        yield "subsystem", _text(port.subsystem)
        yield "serial", _text(port.serial)
        yield "host NQN", _text(port.host_nqn)
    yield "state", _text(port.state)
    yield "speed", _text(port.speed)
    yield "limit", _number(port.queue_limit)
    yield "paths", f"{len(paths):,}"
    yield "down", f"{levels[PathLevel.DOWN]:,}"
    yield "standby", f"{levels[PathLevel.STANDBY]:,}"
    yield "LUNs", f"{len({path.lun for path in paths}):,}"
    yield "target ports", f"{len({path.target for path in paths if path.target}):,}"


def _text(text: str) -> str:
    return safe_text(text) if text else UNKNOWN


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else str(value)
