"""Events for changes of paths, ports and path policies between two scans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from collectors.graph import Graph, Path, Port
from collectors.kernel.device_ids import label_of
from collectors.kernel.sysfs import read_class
from collectors.model import Device
from engine.text import safe_text

MOST_POLICY_EVENTS = 16
"""More policy changes than this at once (of all LUNs of a subsystem) are reported in one event."""


def policy_changes(before: Graph, now: Graph, devices: Mapping[str, Device]) -> Iterator[EventText]:
    """Yield text and data of an event per LUN with a changed policy, or of one event for many."""
    known = {lun.key: lun.policy for lun in before.luns if lun.policy}
    changed = [(known[lun.key], lun) for lun in now.luns if lun.policy and known.get(lun.key, lun.policy) != lun.policy]
    if len(changed) > MOST_POLICY_EVENTS:
        yield f"policy of {len(changed):,} LUNs changed", {"luns": len(changed)}
        return
    for policy, lun in changed:
        name = safe_text(label_of(devices.get(lun.key), lun.name))
        words = safe_text(f"{policy} -> {lun.policy}")
        yield f"policy of {name} changed: {words}", {"lun": name, "policy": safe_text(lun.policy)}


def group_changes(before: Graph, now: Graph, devices: Mapping[str, Device]) -> Iterator[EventText]:
    """Yield text and data of an event per map that uses another priority group, or of one event for many.

    The number of the group changes when multipathd reorders groups, too; a failover is a change of the paths in it.
    """
    old, new = _active_groups(before), _active_groups(now)
    changed = [lun for lun in now.luns if old.get(lun.key) and new.get(lun.key, old[lun.key]) != old[lun.key]]
    if len(changed) > MOST_POLICY_EVENTS:
        names = " ".join(safe_text(lun.name) for lun in changed)
        yield f"{len(changed):,} LUNs use another group of paths", {"luns": len(changed), "switched": names}
        return
    for lun in changed:
        name, paths = safe_text(label_of(devices.get(lun.key), lun.name)), _few(new[lun.key])
        yield (
            f"{name} uses another group of paths: {paths}",
            {"lun": name, "switched": safe_text(lun.name), "paths": paths},
        )


def _active_groups(graph: Graph) -> dict[str, frozenset[str]]:
    """Names of the paths in the active group of each map."""
    found: dict[str, set[str]] = {}
    for path in graph.paths:
        if path.group_state == "active":
            found.setdefault(path.lun, set()).add(path.name)
    return {lun: frozenset(names) for lun, names in found.items()}


_MOST_NAMED = 8


def _few(names: frozenset[str]) -> str:
    """List names, the first ones of many."""
    listed = sorted(map(safe_text, names))
    more = f" and {len(listed) - _MOST_NAMED} more" if len(listed) > _MOST_NAMED else ""
    return ", ".join(listed[:_MOST_NAMED]) + more


PortMarks = frozenset[tuple[str, str, str]]
"""Class with attribute, entry and value of devices that change without a uevent, to detect whether a scan is due."""

MOST_PORT_EVENTS = 16
"""More changed ports than this at once are reported in one event."""

_MARKS = (
    ("scsi_host", "state"),
    ("fc_host", "port_state"),
    ("nvme", "state"),
    ("nvme-subsystem", "iopolicy"),
    ("scsi_tape", "device/state"),
    ("fc_remote_ports", "dev_loss_tmo"),
    ("fc_remote_ports", "fast_io_fail_tmo"),
    ("iscsi_session", "recovery_tmo"),
    ("nvme", "ctrl_loss_tmo"),
    ("nvme", "reconnect_delay"),
    ("nvme", "fast_io_fail_tmo"),
)

EventText = tuple[str, dict[str, str | int]]


def read_port_marks(sysfs: str) -> PortMarks:
    """Read all SCSI hosts, FC ports, NVMe controllers and subsystems, and tape drives; some microseconds each."""
    return frozenset(
        (f"{name} {attribute}", entry, facts[attribute])
        for name, attribute in _MARKS
        for entry, facts in read_class(sysfs, name, (attribute,)).items()
    )


def port_changes(before: Graph, now: Graph) -> Iterator[EventText]:
    """Yield text and data of an event per port added, removed or changed; none if the first graph is empty."""
    if not before.ports and not before.luns:
        return
    old, new = {port.key: port for port in before.ports}, {port.key: port for port in now.ports}
    port_events = [
        *(("removed", port, "") for key, port in old.items() if key not in new),
        *(("added", port, "") for key, port in new.items() if key not in old),
        *(
            ("changed", port, f": {_port_words(old[key])} -> {_port_words(port)}")
            for key, port in new.items()
            if key in old and _port_condition(old[key]) != _port_condition(port)
        ),
    ]
    if len(port_events) > MOST_PORT_EVENTS:
        counts = Counter(action for action, _, _ in port_events)
        yield "ports: " + ", ".join(f"{count:,} {action}" for action, count in counts.items()), dict(counts)
        return
    for action, port, change in port_events:
        yield f"port {safe_text(port.name)} {action}{change}", {"port": safe_text(port.name), "action": action}


def _port_condition(port: Port) -> tuple[str, str, tuple[str, ...]]:
    return port.state, port.speed, port.members


def _port_words(port: Port) -> str:
    members = "+".join(port.members)
    return safe_text(", ".join(filter(None, (port.state, port.speed, members if len(port.members) > 1 else ""))) or "?")


MOST_EVENTS = 32
"""More changes than this at once (a port that is down) are reported in one event."""


def path_changes(before: Graph, now: Graph, devices: Mapping[str, Device]) -> Iterator[EventText]:
    """Yield text and data of an event per path whose state changed, or of one event for very many.

    Added and removed paths are reported as disks.
    """
    known = {path.key: path for path in before.paths}
    pairs = [(known[path.key], path) for path in now.paths if path.key in known]
    changed = [(old, new) for old, new in pairs if _condition(old) != _condition(new)]
    if len(changed) > MOST_EVENTS:
        counts = Counter(_verdict(old, new) for old, new in changed)
        text = "paths: " + ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items())
        yield text, {**counts, **_names_by_verdict(changed)}
        return
    ports = {port.key: port.name for port in now.ports}
    for old, new in changed:
        named, data = _named(new, devices)
        verdict, words = _verdict(old, new), _words(new)
        cause = {"port": safe_text(ports.get(new.port, "")), "change": verdict, "now": words}
        yield f"{named} {verdict}: {_words(old)} -> {words}", {**data, **cause}


def _names_by_verdict(changed: Sequence[tuple[Path, Path]]) -> dict[str, str]:
    """List the paths that were lost and that are back, so that each path has its history."""
    names: dict[str, list[str]] = {"lost": [], "back": []}
    for old, new in changed:
        names.get(_verdict(old, new), []).append(safe_text(new.name))
    return {f"{verdict}_paths": " ".join(listed) for verdict, listed in names.items() if listed}


def limit_changes(before: Graph, now: Graph, devices: Mapping[str, Device]) -> Iterator[EventText]:
    """Yield text and data of an event per path with a changed limit of commands, or of one for many.

    The kernel lowers a limit when the target reports a full task set, and raises it again later
    (scsi_track_queue_full, drivers/scsi/scsi.c).
    """
    known = {path.key: path for path in before.paths}
    pairs = ((known[path.key], path) for path in now.paths if path.key in known)
    changed = [
        (old.queue_limit, new)
        for old, new in pairs
        if None not in {old.queue_limit, new.queue_limit} and old.queue_limit != new.queue_limit
    ]
    if len(changed) > MOST_EVENTS:
        yield f"paths: limit of commands changed on {len(changed):,}", {"paths": len(changed)}
        return
    for limit, path in changed:
        named, data = _named(path, devices)
        yield (
            f"{named}: limit of commands {limit} -> {path.queue_limit}{_why_lower(limit, path)}",
            {**data, "queue_limit": path.queue_limit or 0},
        )


def _why_lower(limit: int | None, path: Path) -> str:
    lower = limit is not None and path.queue_limit is not None and path.queue_limit < limit
    return " (the target reported QUEUE FULL, unless somebody set it)" if lower and path.is_scsi else ""


def _named(path: Path, devices: Mapping[str, Device]) -> tuple[str, dict[str, str | int]]:
    """Name the path and its LUN, as text and as data."""
    name, lun = safe_text(path.name), safe_text(label_of(devices.get(path.lun), ""))
    of_lun = f" of {lun}" if lun and path.lun != path.key else ""
    return f"path {name}{of_lun}", {"path": name, "lun": lun, "usable": int(path.usable)}


def _condition(path: Path) -> tuple[str, ...]:
    return path.state, path.access, path.map_state, "marginal" if path.marginal else ""


def _words(path: Path) -> str:
    return safe_text(", ".join(filter(None, _condition(path)))) or "not known"


def _verdict(old: Path, new: Path) -> str:
    if old.usable == new.usable:
        return "changed"
    return "back" if new.usable else "lost"
