"""Levels whose counters can be cleared, the mark in the events that says so, and their totals between two samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from msgspec import Struct

from collectors.derive.roles import host_keys
from collectors.kernel.identity import SECTOR_BYTES
from collectors.model import MISSING, Sample, Table, Topology
from collectors.session.time_format import iso_time
from collectors.tables.block.schema import DISK, PATH_ERRORS, TRACE
from engine.errors import UsageError
from engine.events import Event, EventKind
from engine.text import safe_text, short_text


class CountLevel(StrEnum):
    """What totals are of."""

    HOST = "host"
    PORT = "HBA port"
    TARGET = "target port"
    LUN = "LUN"
    PATH = "path"
    DISK = "disk"


_OF_PATHS = {CountLevel.PORT, CountLevel.TARGET}
"""Levels whose I/Os are those of their paths."""


class CountSubject(Struct, frozen=True):
    """One host, HBA port, target port, LUN, path or disk."""

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
    if subject.level in _OF_PATHS:
        return path_keys(subject, topology)
    if subject.level is CountLevel.HOST:
        return host_keys(topology)
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
        case CountLevel.TARGET:
            return tuple(path.key for path in graph.paths if path.target == subject.key)
        case CountLevel.PATH:
            return (subject.key,)
        case _:
            return tuple(graph.paths[position].key for position in graph.paths_of.get(subject.key, ())) or (
                subject.key,
            )


_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class LevelTotals:
    """Totals since counters were cleared; None is missing."""

    since_ns: int
    """Wall time of the sample that they count from."""
    elapsed_s: float
    reads: int | None
    writes: int | None
    read_bytes: int | None
    write_bytes: int | None
    errors: int | None
    timeouts: int | None
    retries: int | None
    failovers: int | None
    max_latency_ns: int | None
    """Largest latency; exact time only."""
    latency_reason: str = "no I/O since, or no exact time"
    """Why there is no largest latency, if there is none."""


def level_totals(base: Sample, now: Sample, subject: CountSubject, max_latency_ns: int | None) -> LevelTotals:
    """Add up what a subject did between two samples.

    Args:
        base: sample at the time of clearing.
        now: a later sample of the same source; devices added in between count from 0, those removed are left out.
        subject: what to add up.
        max_latency_ns: largest latency in between, None if unknown.
    """
    disks = device_keys(subject, now.topology)
    paths = path_keys(subject, now.topology)
    io = [
        _added(base.tables.get(DISK.name), now.tables.get(DISK.name), disks, column)
        for column in ("reads", "writes", "read_sectors", "write_sectors")
    ]
    errors = [
        _added(base.tables.get(PATH_ERRORS.name), now.tables.get(PATH_ERRORS.name), paths, column)
        for column in ("errors", "timeouts", "retries", "failovers")
    ]
    read_bytes, write_bytes = (None if sectors is None else sectors * SECTOR_BYTES for sectors in io[2:])
    elapsed_s = (now.monotonic_ns - base.monotonic_ns) / _NS
    return LevelTotals(
        since_ns=base.time_ns,
        elapsed_s=elapsed_s,
        reads=io[0],
        writes=io[1],
        read_bytes=read_bytes,
        write_bytes=write_bytes,
        errors=errors[0],
        timeouts=errors[1],
        retries=errors[2],
        failovers=errors[3],
        max_latency_ns=max_latency_ns,
    )


def largest_latency_ns(samples: Iterable[Sample], subject: CountSubject) -> int | None:
    """Return the largest latency of the intervals that ended with these samples; None without exact time."""
    return max((value for sample in samples for value in _peaks(sample, subject)), default=None)


def _peaks(sample: Sample, subject: CountSubject) -> Iterator[int]:
    table = sample.tables.get(TRACE.name)
    if table is None:
        return
    keys = dict.fromkeys((*device_keys(subject, sample.topology), *path_keys(subject, sample.topology)))
    rows = [row for key in keys if (row := table.rows.positions.get(key)) is not None]
    for value in table.column("latency_max_ns")[rows].tolist():
        if value != MISSING and value:
            yield value


def _added(before: Table | None, now: Table | None, keys: Sequence[str], column: str) -> int | None:
    """Sum the increase of a column over rows; None if no row has a count, or one went back."""
    if now is None:
        return None
    old = None if before is None else before.column(column)
    new = now.column(column)
    total = None
    for key in keys:
        row = now.rows.positions.get(key)
        if row is None or new[row] == MISSING:
            continue
        old_row = None if before is None else before.rows.positions.get(key)
        start = 0 if old is None or old_row is None or old[old_row] == MISSING else int(old[old_row])
        if int(new[row]) < start:
            return None
        total = (total or 0) + int(new[row]) - start
    return total
