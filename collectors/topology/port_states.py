"""HBA ports that come, go or change while lunscope runs: the uevents of disks tell nothing of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from collectors.topology.class_folder import read_class
from collectors.topology.graph import Graph, Port
from engine.text import safe_text

PortMarks = frozenset[tuple[str, str, str]]
"""Class, entry and state of what changes without an announcement, to see whether a scan is due."""

MOST_EVENTS = 16
"""More ports than this that come or go at once are told in one event."""

_MARKS = (
    ("scsi_host", "state"),
    ("fc_host", "port_state"),
    ("nvme", "state"),
    ("nvme-subsystem", "iopolicy"),
    ("scsi_tape", "device/state"),
)

Told = tuple[str, dict[str, str | int]]


def read_port_marks(sysfs: str) -> PortMarks:
    """Look at all SCSI hosts, FC ports, NVMe controllers and subsystems, and tape drives; some microseconds each."""
    return frozenset(
        (name, entry, facts[attribute])
        for name, attribute in _MARKS
        for entry, facts in read_class(sysfs, name, (attribute,)).items()
    )


def port_changes(before: Graph, now: Graph) -> Iterator[Told]:
    """Yield text and data of an event per port that came, went or changed its state; none from an empty graph."""
    if not before.ports and not before.luns:
        return
    old, new = {port.key: port for port in before.ports}, {port.key: port for port in now.ports}
    told = [
        *(("removed", port, "") for key, port in old.items() if key not in new),
        *(("added", port, "") for key, port in new.items() if key not in old),
        *(
            ("changed", port, f": {_words(old[key])} -> {_words(port)}")
            for key, port in new.items()
            if key in old and _condition(old[key]) != _condition(port)
        ),
    ]
    if len(told) > MOST_EVENTS:
        counts = Counter(action for action, _, _ in told)
        yield "ports: " + ", ".join(f"{count:,} {action}" for action, count in counts.items()), dict(counts)
        return
    for action, port, change in told:
        yield f"port {safe_text(port.name)} {action}{change}", {"port": safe_text(port.name), "action": action}


def _condition(port: Port) -> tuple[str, str, tuple[str, ...]]:
    return port.state, port.speed, port.members


def _words(port: Port) -> str:
    members = "+".join(port.members)
    return safe_text(", ".join(filter(None, (port.state, port.speed, members if len(port.members) > 1 else ""))) or "?")
