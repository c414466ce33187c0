"""The sheet of a LUN: its map, groups, paths, timeouts, errors and history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from collectors.graph import Lun, Path
from collectors.kernel.device_ids import plain_wwid
from collectors.kernel.hotplug_changes import size_text
from collectors.paths.groups import lun_name, policy_name, port_name, target_name
from collectors.paths.queueing import without_paths
from collectors.paths.state import access_mix, state_of
from collectors.reports.sheets.facts import lun_history, timeout_facts
from collectors.reports.sheets.sheet import Sheet, SheetData, SheetFact, SheetSection, counter_facts, fact
from collectors.topology.ports import natural
from engine.text import safe_text

NO_DAEMON = "multipathd did not answer (is it running here? its socket needs root)"
NO_LINKS = "udev has none, or this is a recording"
NO_TABLE = "the table of the map was not read: it needs root, on the host itself"


def lun_sheet(lun: Lun, data: SheetData) -> Sheet:
    """Make the sheet of a LUN or disk."""
    paths = sorted(data.topology.graph.of_lun(lun), key=lambda path: natural(path.address))
    sections = [SheetSection("LUN", tuple(_identity(lun, paths, data)))]
    if lun.multipath:
        sections.append(SheetSection("Map", tuple(_map(lun))))
    if any(path.group is not None for path in paths):
        sections.append(SheetSection("Groups of paths", lines=tuple(_groups(paths))))
    sections.append(SheetSection("Paths", lines=tuple(_path_lines(paths, data)) or ("none",)))
    sections.append(SheetSection("Timeouts", tuple(timeout_facts(paths))))
    reason = "the kernel has no error counters for these paths"
    keys = [path.key for path in paths]
    sections.append(
        SheetSection("Errors of its paths", tuple(counter_facts(data.tables.get("path_errors"), keys, reason)))
    )
    sections.append(SheetSection("History", tuple(lun_history(lun, paths, data.history))))
    return Sheet("LUN", lun_name(lun.key, data.topology), lun.key, tuple(sections))


def _identity(lun: Lun, paths: Sequence[Path], data: SheetData) -> Iterator[SheetFact]:
    device = data.topology.devices.get(lun.key)
    known = [one for one in (device, *(data.topology.devices.get(path.key) for path in paths)) if one is not None]
    yield fact("name", lun_name(lun.key, data.topology))
    yield fact("wwid", "" if device is None else plain_wwid(device.persistent_id), "the device has none")
    links = [link for one in known for link in data.links(one)]
    yield fact("by-id", " ".join(dict.fromkeys(links)), NO_LINKS)
    yield fact("size", size_text(device.size_bytes) if device is not None and device.size_bytes is not None else None)
    maker = next((f"{one.vendor} {one.model}".strip() for one in known if one.vendor or one.model), "")
    yield fact("vendor, model", maker, "the driver reports none")
    yield fact("serial", next((one.serial for one in known if one.serial), ""), "the device reports none")
    usable = sum(path.usable for path in paths)
    mix = access_mix(paths)
    yield fact("paths", f"{usable} of {len(paths)} usable" + (f": {mix}" if mix else ""))
    yield fact("policy", policy_name(lun))
    wanted = dict.fromkeys(path.controller for path in paths if path.controller)
    yield fact("controllers", ", ".join(wanted), "the storage does not identify its controllers")


def _map(lun: Lun) -> Iterator[SheetFact]:
    yield fact("all paths down", without_paths(lun).text)
    if lun.multipath != "dm":
        return
    yield fact("features", lun.features, NO_TABLE)
    queue = lun.queue_if_no_path
    yield fact("queue_if_no_path", None if queue is None else "yes" if queue else "no", NO_TABLE)
    yield fact("hwhandler", lun.hw_handler, NO_TABLE)
    yield fact("no_path_retry", _retry(lun), NO_DAEMON)
    manual = "manual, or deferred and not pending" if lun.failback == "-" else lun.failback
    yield fact("failback", manual, NO_DAEMON)
    yield fact("group switches", lun.group_switches, NO_DAEMON)
    yield fact("path faults", lun.path_faults, NO_DAEMON)
    yield fact("queue timeouts", lun.queue_timeouts, NO_DAEMON)


def _retry(lun: Lun) -> str:
    """Write it as multipath.conf(5) does."""
    words = {"on": "queue", "off": "fail (or its retries are over)", "-": "not set: the features of the map decide"}
    text = lun.no_path_retry
    return words.get(text, text.replace(" chk", " checks"))


def _groups(paths: Sequence[Path]) -> Iterator[str]:
    numbers = sorted({path.group for path in paths if path.group is not None})
    for number in numbers:
        members = [path for path in paths if path.group == number]
        priorities = sorted({str(path.priority) for path in members if path.priority is not None})
        names = " ".join(safe_text(path.name) for path in members)
        priority = f"priority {'/'.join(priorities)}" if priorities else "priority not known"
        yield f"{number}  {safe_text(_group_state(members))}  {priority}  {names}"


def _group_state(members: Sequence[Path]) -> str:
    """Write the state of a group: a map has one; each controller has its own for an ANA group (NVMe base, 8.1)."""
    counts = Counter(path.group_state or (not path.map_state and path.access) or "state not known" for path in members)
    if len(counts) == 1:
        return next(iter(counts))
    return " + ".join(f"{count} {state}" for state, count in counts.most_common())


def _path_lines(paths: Sequence[Path], data: SheetData) -> Iterator[str]:
    graph = data.topology.graph
    ports = {port.key: port_name(port) for port in graph.ports}
    targets = {target.key: target_name(target) for target in graph.targets}
    rows = [
        (
            path.name,
            state_of(path).word or "unknown",
            path.address,
            " -> ".join(filter(None, (ports.get(path.port), targets.get(path.target)))),
            f"to {path.target_port}" if path.target_port else "",
            f"TPG {path.port_group}" if path.port_group is not None else "",
            f"{path.checker} {path.checker_state}".strip(),
        )
        for path in paths
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width)
        yield safe_text("  ".join(cells).rstrip())
