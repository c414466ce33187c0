"""The LUN, path, HBA port or target port that a name means, and its sheet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from collectors.graph import Lun, Path, Port, TargetPort, ports_of, targets_of
from collectors.kernel.device_ids import plain_wwid
from collectors.model import Topology
from collectors.paths.groups import lun_name, port_name, target_name
from collectors.paths.state import state_of
from collectors.reports.sheets.facts import path_history_facts, timeout_facts
from collectors.reports.sheets.lun_sheet import NO_DAEMON, NO_TABLE, lun_sheet
from collectors.reports.sheets.of_host import PortPlace
from collectors.reports.sheets.sheet import Sheet, SheetData, SheetFact, SheetSection, counter_facts, fact
from engine.errors import UsageError
from engine.text import safe_text, short_text


class SheetKind(StrEnum):
    """What a sheet is about."""

    LUN = "lun"
    PATH = "path"
    PORT = "port"
    TARGET = "target-port"


_WORDS = {
    SheetKind.LUN: "LUN",
    SheetKind.PATH: "path",
    SheetKind.PORT: "HBA port",
    SheetKind.TARGET: "target port",
}


def find_sheet(kind: SheetKind, name: str, data: SheetData) -> Sheet:
    """Make the sheet of what a name means: kernel name, alias, WWID, WWPN or address.

    Raises:
        UsageError: nothing has this name.
    """
    key = next((key for key, names in _names(kind, data.topology) if name in names), None)
    sheet = None if key is None else sheet_of_key(kind, key, data)
    if sheet is None:
        shown = safe_text(short_text(name, 80))
        raise UsageError(f"'{shown}': no such {_WORDS[kind]} here; `lunscope scan` lists them")
    return sheet


def sheet_of_key(kind: SheetKind, key: str, data: SheetData) -> Sheet | None:
    """Make the sheet of a key of the graph; None if it is not in it."""
    graph = data.topology.graph
    match kind:
        case SheetKind.LUN:
            lun = next((lun for lun in graph.luns if lun.key == key), None)
            return None if lun is None else lun_sheet(lun, data)
        case SheetKind.PATH:
            path = next((path for path in graph.paths if path.key == key), None)
            return None if path is None else path_sheet(path, data)
        case SheetKind.PORT:
            port = next((port for port in graph.ports if port.key == key), None)
            return None if port is None else port_sheet(port, data)
        case SheetKind.TARGET:
            target = targets_of(graph).get(key)
            return None if target is None else target_sheet(target, data)


def _names(kind: SheetKind, topology: Topology) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the key of each and all its names."""
    graph = topology.graph
    if kind is SheetKind.LUN:
        yield from ((lun.key, _lun_names(lun, topology)) for lun in graph.luns)
    elif kind is SheetKind.PATH:
        yield from ((path.key, _path_names(path)) for path in graph.paths)
    elif kind is SheetKind.PORT:
        yield from ((port.key, _port_names(port)) for port in graph.ports)
    else:
        yield from ((each.key, frozenset({each.key, each.name, each.label} - {""})) for each in graph.targets)


def _lun_names(lun: Lun, topology: Topology) -> frozenset[str]:
    device = topology.devices.get(lun.key)
    own = {lun.key, lun.name, f"/dev/{lun.name}"}
    if device is not None:
        alias = device.friendly_name
        own |= {alias, f"/dev/mapper/{alias}" if alias else "", device.persistent_id, plain_wwid(device.persistent_id)}
    return frozenset(own - {""})


def _path_names(path: Path) -> frozenset[str]:
    return frozenset({path.key, path.name, f"/dev/{path.name}", path.address} - {""})


def _port_names(port: Port) -> frozenset[str]:
    return frozenset({port.key, port.name, port.address, port.label, *port.members} - {""})


NO_VPD = "the device has no VPD page 83h that names it"


def path_sheet(path: Path, data: SheetData) -> Sheet:
    """Make the sheet of a path."""
    lun = next((lun for lun in data.topology.graph.luns if lun.key == path.lun), None)
    mapped = lun is not None and lun.multipath == "dm"
    sections = [
        SheetSection("Path", tuple(_route(path, data))),
        SheetSection("Storage", tuple(_storage(path, data))),
        SheetSection("State", tuple(_state(path, data))),
    ]
    if mapped:
        sections.append(SheetSection("In the map", tuple(_in_map(path))))
    reason = "the kernel has no error counters for this path"
    errors = counter_facts(data.tables.get("path_errors"), (path.key,), reason)
    sections += [
        SheetSection("Timeouts", tuple(timeout_facts([path]))),
        SheetSection("Errors", tuple(errors)),
        SheetSection("History", tuple(path_history_facts(path.name, data.history))),
    ]
    return Sheet("path", safe_text(path.name), path.key, tuple(sections))


def _route(path: Path, data: SheetData) -> Iterator[SheetFact]:
    port = ports_of(data.topology.graph).get(path.port)
    yield fact("name", path.name)
    yield fact("LUN", "itself" if path.lun == path.key else lun_name(path.lun, data.topology))
    yield fact("address", path.address)
    yield fact("HBA port", None if port is None else port_name(port), "it is on no port")
    yield fact("port address", "" if port is None else port.address or port.parent)
    yield fact("limit", path.queue_limit, "the driver shows none")


def _storage(path: Path, data: SheetData) -> Iterator[SheetFact]:
    target = targets_of(data.topology.graph).get(path.target)
    yield fact("target port", _target_text(target), "the bus has no target ports")
    yield fact("array", "" if target is None else target.array, "the bus does not name the owner of its ports")
    yield fact("port by VPD 83h", path.target_port, NO_VPD)
    yield fact("relative port", path.relative_port, NO_VPD)
    yield fact("port group (TPG)", path.port_group, NO_VPD)
    yield fact("controller", path.controller, "the storage does not identify its controllers")


def _target_text(target: TargetPort | None) -> str:
    return "" if target is None else f"{target.name} {target.label}".rstrip()


def _state(path: Path, data: SheetData) -> Iterator[SheetFact]:
    age = "" if data.states_age_s != data.states_age_s else f" (as of {data.states_age_s:.0f} s ago)"
    yield fact("device", path.state + age if path.state else "", "the driver has no state")
    preferred = ", preferred" if path.preferred else ""
    yield fact("access", path.access + preferred if path.access else "", "no ALUA or ANA")
    marginal = None if path.marginal is None else "yes" if path.marginal else "no"
    yield fact("marginal", marginal, "neither multipathd nor the transport reports it")


def _in_map(path: Path) -> Iterator[SheetFact]:
    yield fact("state", path.map_state, NO_TABLE)
    yield fact("failures", path.failures, NO_TABLE)
    group = f"{path.group} {path.group_state}".rstrip() if path.group is not None else ""
    yield fact("group", group, NO_TABLE)
    yield fact("weight", path.weight, NO_TABLE)
    yield fact("priority", path.priority, NO_DAEMON)
    yield fact("checker", f"{path.checker} {path.checker_state}".strip(), NO_DAEMON)


_NO_COUNTERS = {
    "ata": "SATA: the kernel has no link counters in sysfs",
    "iscsi": "iSCSI: the kernel has no error counters in sysfs; ss(8) shows those of TCP",
    "virtio": "a virtual port has no link",
}


def port_sheet(port: Port, data: SheetData) -> Sheet:
    """Make the sheet of an HBA port."""
    paths = [path for path in data.topology.graph.paths if path.port == port.key]
    reason = _NO_COUNTERS.get(port.transport, "the driver reports none (FC statistics, SAS phys, NVMe diag)")
    counters = counter_facts(data.tables.get("port_errors"), (port.key,), reason)
    path_errors = counter_facts(
        data.tables.get("path_errors"), [path.key for path in paths], "the kernel has no error counters for its paths"
    )
    sections = (
        SheetSection("HBA port", (*_identity(port), *_place(data.places.get(port.key)), *_queues(port, paths))),
        SheetSection("Link", tuple(_link(port))),
        SheetSection("Paths through it", tuple(_paths(paths)), tuple(_targets(paths, data))),
        SheetSection("Timeouts of its paths", tuple(timeout_facts(paths)) if paths else ()),
        SheetSection("Error counters", tuple(counters)),
        SheetSection("Errors of its paths", tuple(path_errors)),
    )
    return Sheet("HBA port", port_name(port), port.key, tuple(one for one in sections if one.facts or one.lines))


def target_sheet(target: TargetPort, data: SheetData) -> Sheet:
    """Make the sheet of a target port."""
    paths = [path for path in data.topology.graph.paths if path.target == target.key]
    path_errors = counter_facts(
        data.tables.get("path_errors"), [path.key for path in paths], "the kernel has no error counters for its paths"
    )
    sections = (
        SheetSection("Target port", tuple(_target(target, paths))),
        SheetSection("Paths to it", tuple(_paths(paths)), tuple(_ports(paths, data))),
        SheetSection("Timeouts of its paths", tuple(timeout_facts(paths)) if paths else ()),
        SheetSection("Errors of its paths", tuple(path_errors)),
    )
    return Sheet("target port", target_name(target), target.key, tuple(one for one in sections if one.facts))


def _target(target: TargetPort, paths: Sequence[Path]) -> Iterator[SheetFact]:
    def common(values: Iterable[object]) -> str:
        return ", ".join(str(value) for value in dict.fromkeys(values) if value not in (None, ""))

    yield fact("address", target.name)
    yield fact("transport", target.transport)
    yield fact("array", target.array, "the bus does not name the owner of its ports")
    yield fact("controller", common(path.controller for path in paths), "the storage does not identify its controllers")
    yield fact("port by VPD 83h", common(path.target_port for path in paths), NO_VPD)
    yield fact("port group (TPG)", common(path.port_group for path in paths), NO_VPD)


def _ports(paths: Sequence[Path], data: SheetData) -> Iterator[str]:
    counts = Counter(path.port for path in paths)
    for port in data.topology.graph.ports:
        if counts[port.key]:
            yield f"<- {port_name(port)}: {counts[port.key]:,} path{'' if counts[port.key] == 1 else 's'}"


def _identity(port: Port) -> Iterator[SheetFact]:
    yield fact("name", port_name(port))
    yield fact("members", " ".join(port.members))
    yield fact("transport", port.transport)
    yield fact("driver", port.driver)
    yield fact("address", port.address, "the bus has no port names")
    yield fact("part of", port.parent)
    if port.transport == "fc":
        yield fact("node name", port.node_name)
    if port.subsystem:
        yield fact("subsystem", port.subsystem)
        yield fact("serial", port.serial)
        yield fact("host NQN", port.host_nqn, "PCIe controllers have none")
    yield fact("limit", port.queue_limit, "the driver shows none")


def _place(place: PortPlace | None) -> Iterator[SheetFact]:
    if place is None:
        return
    yield fact("NUMA node", place.numa_node, "the bus gives none")
    count = len(place.interrupts)
    words = f"{count:,} interrupt{'' if count == 1 else 's'} on CPUs {place.cpus}" if place.cpus else ""
    yield fact("interrupts", words, "they are not shown, as of virtual buses")


def _queues(port: Port, paths: Sequence[Path]) -> Iterator[SheetFact]:
    """Compare the commands that all paths admit together with those that the port takes; more of them wait in front."""
    limits = [path.queue_limit for path in paths]
    known = [limit for limit in limits if limit is not None]
    if port.queue_limit is None or not known or len(known) < len(limits):
        return
    times = sum(known) / port.queue_limit if port.queue_limit else 0
    yield fact("queue depths of its paths", f"{sum(known):,} together, {times:.2f} times the limit")


def _link(port: Port) -> Iterator[SheetFact]:
    yield fact("state", port.state, "the driver has no state")
    yield fact("rate", port.speed, "the bus reports no rate")
    if port.transport == "fc":
        yield fact("supported rates", port.supported_speeds)
        yield fact("port type", port.port_type)
        yield fact("fabric address", port.port_id)


def _paths(paths: Sequence[Path]) -> Iterator[SheetFact]:
    words = Counter(state_of(path).word or "state not known" for path in paths)
    states = ", ".join(f"{count:,} {word}" for word, count in words.most_common())
    yield fact("paths", f"{len(paths):,}" + (f": {states}" if states else ""))
    yield fact("LUNs", f"{len({path.lun for path in paths}):,}")


def _targets(paths: Sequence[Path], data: SheetData) -> Iterator[str]:
    counts = Counter(path.target for path in paths)
    for target in data.topology.graph.targets:
        if counts[target.key]:
            of = f" of {target.array}" if target.array else ""
            yield f"-> {target_name(target)}{of}: {counts[target.key]:,} path{'' if counts[target.key] == 1 else 's'}"
