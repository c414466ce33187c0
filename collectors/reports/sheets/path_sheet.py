"""The sheet of a path: route, target port, state in kernel, storage and map, timeouts, errors, history."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.graph import Path, TargetPort, ports_of
from collectors.paths.groups import lun_name, port_name
from collectors.reports.sheets.facts import path_history_facts, timeout_facts
from collectors.reports.sheets.lun_sheet import NO_DAEMON, NO_TABLE
from collectors.reports.sheets.sheet import Sheet, SheetData, SheetFact, SheetSection, counter_facts, fact
from engine.text import safe_text

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
    target = next((one for one in data.topology.graph.targets if one.key == path.target), None)
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
