"""The device that a row stands for where the row is no device itself: latencies, events."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.latency.subjects import TRACE, LatencySubject
from collectors.model import Topology
from engine.events import Event, EventKind
from engine.text import safe_text

_DEVICE_TABLES = frozenset({"disks", "paths"})
_NAMED_BY = {EventKind.HOTPLUG: "name", EventKind.PATH: "path"}
"""Keys in which events of a kind name their device."""


def device_of_subject(subject: LatencySubject | None, topology: Topology) -> str | None:
    """Key of the disk, path or LUN with these latencies; None for a port, a group of disks, and the load itself."""
    if subject is None or subject.source != TRACE:
        return None
    if len(subject.keys) == 1:
        return next(iter(subject.keys))
    graph = topology.graph
    luns = {path.lun for path in graph.paths if path.key in subject.keys}
    if len(luns) != 1:
        return None
    (lun,) = luns
    paths = {graph.paths[position].key for position in graph.paths_of.get(lun, ())}
    return lun if paths == subject.keys - {lun} else None


def device_of_event(event: Event | None, topology: Topology) -> str | None:
    """Key of the device that an event names, if it is there now."""
    if event is None:
        return None
    if event.kind is EventKind.ALERT and event.data.get("table") in _DEVICE_TABLES:
        return next((key for key in topology.devices if safe_text(key) == event.data.get("key")), None)
    name = event.data.get(_NAMED_BY.get(event.kind, ""))
    return next(_named(name, topology), None) if isinstance(name, str) else None


def _named(name: str, topology: Topology) -> Iterator[str]:
    return (key for key, device in topology.devices.items() if safe_text(device.name) == name)


def device_of_row(table: str, key: str) -> str | None:
    """Key of the device of a row; None for a row of a table without devices."""
    return key if table in _DEVICE_TABLES else None
