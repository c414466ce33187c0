"""The sheet of an HBA port: identity, link, paths through it, timeouts, error counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from collectors.graph import Path, Port
from collectors.paths.groups import port_name, target_name
from collectors.paths.state import state_of
from collectors.reports.sheets.facts import timeout_facts
from collectors.reports.sheets.sheet import Sheet, SheetData, SheetFact, SheetSection, counter_facts, fact

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
        SheetSection("HBA port", tuple(_identity(port))),
        SheetSection("Link", tuple(_link(port))),
        SheetSection("Paths through it", tuple(_paths(paths)), tuple(_targets(paths, data))),
        SheetSection("Timeouts of its paths", tuple(timeout_facts(paths)) if paths else ()),
        SheetSection("Error counters", tuple(counters)),
        SheetSection("Errors of its paths", tuple(path_errors)),
    )
    return Sheet("HBA port", port_name(port), port.key, tuple(one for one in sections if one.facts or one.lines))


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
