"""Subjects of the latency screen: the load and its targets, disks, paths, LUNs, ports; NFS is in nfs_subjects.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from collectors.derive.roles import host_keys, present_disks
from collectors.graph import Lun, targets_of
from collectors.hotness import hottest
from collectors.kernel.device_ids import both_names
from collectors.model import Frame, Histograms, Part, Rows, Topology
from engine.text import safe_text


class Direction(StrEnum):
    """Direction of the I/Os to count."""

    BOTH = "both"
    READ = "read"
    WRITE = "write"


class LatencySubject(Struct, frozen=True):
    """Rows of one set of histograms to add up: a disk, the paths of a LUN or port, the targets of the load."""

    title: str
    source: str
    """Name of the histograms in a sample: "load", "trace", "nfs_latency"."""
    keys: frozenset[str]
    """Empty: all rows."""
    ends: tuple[str, str] = ("", "")
    """Beginning and end of the keys of its rows, for NFS, whose rows come while it is followed."""

    def has(self, key: str) -> bool:
        """Whether a row belongs to it."""
        if any(self.ends):
            return key.startswith(self.ends[0]) and key.endswith(self.ends[1])
        return not self.keys or key in self.keys


def parts_of(series: Sequence[str]) -> tuple[Part, ...]:
    """Parts in these series, in the order of `Part`."""
    held = {_split(name)[0] for name in series}
    return tuple(part for part in Part if part in held)


def series_of(series: Sequence[str], part: Part, direction: Direction) -> tuple[str, ...]:
    """Select the series of a part and a direction."""
    return tuple(name for name in series if _belongs(name, part, direction))


def _belongs(name: str, part: Part, direction: Direction) -> bool:
    its_part, its_direction = _split(name)
    return its_part == part and (direction is Direction.BOTH or its_direction == direction)


def _split(name: str) -> tuple[str, str]:
    """Split "queue_read" into part and direction; "read" is the total of reads."""
    part, _, direction = name.rpartition("_")
    return part or Part.TOTAL, direction


LOAD, TRACE, NFS = "load", "trace", "nfs_latency"
SOURCES = (LOAD, TRACE, NFS)
"""Histograms whose rows are subjects; those of processes on a device are not."""
WHOLE_LOAD = LatencySubject("the load", LOAD, frozenset())


def disk_subject(key: str, frame: Frame) -> LatencySubject | None:
    """Return the subject of a disk; None if the disk is unknown."""
    device = frame.topology.devices.get(key)
    if device is None:
        return None
    return LatencySubject(safe_text(both_names(device)), TRACE, _members(key, frame.topology))


def port_subject(key: str, topology: Topology) -> LatencySubject | None:
    """Return the subject of all paths of an HBA port; None if it has none."""
    keys = frozenset(path.key for path in topology.graph.paths if path.port == key)
    port = next((port for port in topology.graph.ports if port.key == key), None)
    return _of_paths("HBA port", port.name, keys) if port is not None and keys else None


def target_subject(key: str, topology: Topology) -> LatencySubject | None:
    """Return the subject of all paths to a target port; None if it has none."""
    keys = frozenset(path.key for path in topology.graph.paths if path.target == key)
    target = targets_of(topology.graph).get(key)
    return _of_paths("target port", target.name, keys) if target is not None and keys else None


def host_subject(topology: Topology) -> LatencySubject:
    """Return the subject of all disks and paths that are built on nothing else."""
    keys = frozenset(host_keys(topology))
    return LatencySubject("the host", TRACE, keys)


def first_subject(frame: Frame, offered: Mapping[str, Histograms]) -> LatencySubject | None:
    """Return the default subject: the load if one runs, else the hottest disk."""
    if LOAD in offered:
        return WHOLE_LOAD
    disks = frame.tables.get("disks")
    key = hottest(None if disks is None else present_disks(disks, frame.topology))
    return None if key is None else disk_subject(key, frame)


def offered_subjects(frame: Frame, offered: Mapping[str, Histograms]) -> Iterator[LatencySubject]:
    """Yield all subjects with current histograms, the load first."""
    load = offered.get(LOAD)
    if load is not None:
        yield from _load_subjects(load.rows)
    if TRACE in offered:
        graph = frame.topology.graph
        present = set(present_keys(frame))
        for lun in graph.luns:
            if lun.key in present:
                yield from _lun_subjects(lun, frame)
        if not graph.luns:
            yield from filter(None, (disk_subject(key, frame) for key in present_keys(frame)))
        yield from _port_subjects(frame.topology)
        yield from _path_subjects(frame.topology)


def present_keys(frame: Frame) -> tuple[str, ...]:
    """Keys of the disks that have a size."""
    disks = frame.tables.get("disks")
    return () if disks is None else present_disks(disks, frame.topology).rows.keys


def _load_subjects(rows: Rows) -> Iterator[LatencySubject]:
    yield WHOLE_LOAD
    if len(rows) > 1:
        for key, name in zip(rows.keys, rows.names, strict=True):
            yield LatencySubject(f"target {safe_text(name)}", LOAD, frozenset({key}))


def _lun_subjects(lun: Lun, frame: Frame) -> Iterator[LatencySubject]:
    whole = disk_subject(lun.key, frame)
    if whole is not None:
        yield whole
    paths = frame.topology.graph.paths_of.get(lun.key, ())
    if lun.multipath == "dm" and paths:
        keys = frozenset(frame.topology.graph.paths[position].key for position in paths)
        yield LatencySubject(f"{safe_text(lun.name)}: its {len(paths)} paths together", TRACE, keys)


def _port_subjects(topology: Topology) -> Iterator[LatencySubject]:
    by_port: dict[str, set[str]] = {}
    by_target: dict[str, set[str]] = {}
    for path in topology.graph.paths:
        by_port.setdefault(path.port, set()).add(path.key)
        by_target.setdefault(path.target, set()).add(path.key)
    for port in topology.graph.ports:
        if port.key in by_port:
            yield _of_paths("HBA port", port.name, frozenset(by_port[port.key]))
    for target in topology.graph.targets:
        if target.key in by_target:
            yield _of_paths("target port", target.name, frozenset(by_target[target.key]))


def _of_paths(kind: str, name: str, keys: frozenset[str]) -> LatencySubject:
    return LatencySubject(f"{kind} {safe_text(name)}, {len(keys)} path{'' if len(keys) == 1 else 's'}", TRACE, keys)


def _path_subjects(topology: Topology) -> Iterator[LatencySubject]:
    luns = {lun.key: lun.name for lun in topology.graph.luns if lun.multipath}
    for path in topology.graph.paths:
        if path.lun in luns:
            title = f"path {safe_text(path.name)} to {safe_text(luns[path.lun])}"
            yield LatencySubject(title, TRACE, frozenset({path.key}))


def _members(key: str, topology: Topology) -> frozenset[str]:
    """Rows with the I/Os of a disk: its own, for an NVMe head those of its paths."""
    graph = topology.graph
    lun = next((lun for lun in graph.luns if lun.key == key), None)
    if lun is None or lun.multipath != "nvme":
        return frozenset({key})
    return frozenset(graph.paths[position].key for position in graph.paths_of.get(key, ()))
