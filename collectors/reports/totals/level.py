"""Levels whose counters can be cleared, and the mark in the events that says so."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from collectors.derive.roles import is_base
from collectors.model import Topology
from collectors.session.time_format import iso_time
from engine.errors import UsageError
from engine.events import Event, EventKind
from engine.text import safe_text, short_text


class CountLevel(StrEnum):
    """What totals are of."""

    HOST = "host"
    PORT = "HBA port"
    LUN = "LUN"
    PATH = "path"
    DISK = "disk"


class CountSubject(Struct, frozen=True):
    """One host, port, LUN, path or disk."""

    level: CountLevel
    key: str
    """Key in the graph; empty for the host."""
    name: str
    """Safe to print."""

    @property
    def words(self) -> str:
        """Level and name."""
        return "the host" if self.level is CountLevel.HOST else f"{self.level} {self.name}"

    @property
    def mark(self) -> dict[str, str | int]:
        """Data of the event that clears its counters."""
        return {"cleared": str(self.level), "key": self.key, "name": self.name}


WHOLE_HOST = CountSubject(CountLevel.HOST, "", "")


def cleared_at(events: Iterable[Event], subject: CountSubject, time_ns: int) -> Event | None:
    """Find the event that last cleared the counters of a subject, up to a time."""
    found = None
    for event in events:
        if event.time_ns > time_ns:
            break
        if event.data.get("cleared") == subject.level and event.data.get("key") == subject.key:
            found = event
    return found


def find_mark(events: Iterable[Event], name: str) -> Event:
    """Find the last note or mark with this text, or that cleared something of this name; `last` is the last of all.

    Raises:
        UsageError: there is none.
    """
    marks = [event for event in events if event.kind is EventKind.NOTE]
    named = [event for event in marks if name == "last" or name in {event.text, str(event.data.get("name", ""))}]
    if named:
        return named[-1]
    shown = safe_text(short_text(name, 60))
    texts = [f"'{safe_text(event.text)}' ({iso_time(event.time_ns)})" for event in marks[-5:]]
    known = f"the last ones are {', '.join(texts)}" if texts else "there is none in it: A on a screen writes one"
    raise UsageError(f"--since-mark '{shown}': no such note or mark; {known}")


def device_keys(subject: CountSubject, topology: Topology) -> tuple[str, ...]:
    """Keys of the devices whose I/O is that of a subject, each I/O once.

    An NVMe head is counted by its paths: kernels differ in whether they count I/O of the head.
    """
    graph = topology.graph
    if subject.level is CountLevel.PORT:
        return tuple(path.key for path in graph.paths if path.port == subject.key)
    if subject.level is CountLevel.HOST:
        paths = (path.key for path in graph.paths)
        others = (lun.key for lun in graph.luns if not lun.multipath and is_base(lun.key, topology))
        return tuple(dict.fromkeys((*paths, *others)))
    heads = {lun.key for lun in graph.luns if lun.multipath == "nvme"}
    if subject.key in heads:
        return path_keys(subject, topology)
    return (subject.key,)


def path_keys(subject: CountSubject, topology: Topology) -> tuple[str, ...]:
    """Keys of the paths of a subject, whose error counters are added up."""
    graph = topology.graph
    match subject.level:
        case CountLevel.HOST:
            return tuple(path.key for path in graph.paths)
        case CountLevel.PORT:
            return tuple(path.key for path in graph.paths if path.port == subject.key)
        case CountLevel.PATH:
            return (subject.key,)
        case _:
            return tuple(graph.paths[position].key for position in graph.paths_of.get(subject.key, ())) or (
                subject.key,
            )
