"""What the screen of processes is about, and the rows of a frame that belong to it."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from collectors.latency.subjects import TRACE, LatencySubject
from collectors.model import Frame, FrameTable, Rows, Topology
from collectors.tables.cgroup import schema as cgroup_schema
from collectors.tables.process_io.schema import TABLE, device_name, parts_of
from engine.text import safe_text
from tui.text.safe import disk_labels


class Scope(Struct, frozen=True):
    """Rows to show: of these devices, of this process, or of the processes of this control group; empty is all."""

    title: str
    disks: frozenset[str] = frozenset()
    """Keys of devices."""
    submitter: str = ""
    """Key of a process, as in the table of processes."""
    cgroup: str = ""
    """Path of a control group; those below it belong to it."""


EVERYTHING = Scope("all devices")


def scope_of(subject: LatencySubject, topology: Topology) -> Scope:
    """Scope of what is selected on a screen; an NVMe head has rows of its own, each the sum over its paths."""
    if subject.source != TRACE:
        return EVERYTHING
    heads = (lun for lun in topology.graph.luns if lun.multipath == "nvme")
    for head in heads:
        paths = frozenset(topology.graph.paths[at].key for at in topology.graph.paths_of.get(head.key, ()))
        if paths == subject.keys:
            return Scope(subject.title, frozenset({head.key}))
    return Scope(subject.title, subject.keys)


def shown_rows(frame: Frame, scope: Scope) -> FrameTable | None:
    """Rows of the frame in a scope; None where the frame has no I/O by process."""
    table = frame.tables.get(TABLE)
    if table is None:
        return None
    groups = _group_paths(frame) if scope.cgroup else {}
    doubled = _paths_of_heads(frame.topology) if scope == EVERYTHING or scope.submitter else frozenset()
    kept = [
        row
        for row, key in enumerate(table.rows.keys)
        if _belongs(key, scope, doubled)
        and (not scope.cgroup or _is_within(groups.get(_number(table.value("cgroup", row)), ""), scope.cgroup))
    ]
    return table.taken(kept, _picked(table.rows, tuple(kept)))


@functools.lru_cache(maxsize=4)
def _picked(rows: Rows, kept: tuple[int, ...]) -> Rows:
    return rows.taken(kept)


def _belongs(key: str, scope: Scope, doubled: frozenset[str]) -> bool:
    disk, submitter = parts_of(key)
    is_device = disk in scope.disks if scope.disks else disk not in doubled
    return is_device and (not scope.submitter or submitter == scope.submitter)


@functools.lru_cache(maxsize=2)
def _paths_of_heads(topology: Topology) -> frozenset[str]:
    """Devices whose I/Os are in the rows of their NVMe heads, too."""
    heads = {lun.key for lun in topology.graph.luns if lun.multipath == "nvme"}
    return frozenset(path.key for path in topology.graph.paths if path.lun in heads)


def _group_paths(frame: Frame) -> dict[int, str]:
    """Paths of the control groups with I/O, by number."""
    table = frame.tables.get("cgroups")
    if table is None:
        return {}
    return {cgroup_schema.number_of(key): cgroup_schema.parts_of(key)[1] for key in table.rows.keys}


def _number(value: float) -> int:
    return -1 if np.isnan(value) else int(value)


def _is_within(path: str, group: str) -> bool:
    return bool(path) and (group in ("/", path) or path.startswith(f"{group}/"))


@functools.lru_cache(maxsize=4)
def row_labels(rows: Rows, topology: Topology, scope: Scope) -> Mapping[str, str]:
    """Names of the rows: the device where the process is given, the process where the device is, else both."""
    labels = disk_labels(topology)
    found = {}
    for key, name in zip(rows.keys, rows.names, strict=True):
        disk = parts_of(key)[0]
        device = safe_text(labels.get(disk, "")) or device_name(disk, topology)
        process = safe_text(name)
        if scope.submitter:
            found[key] = device
        else:
            found[key] = process if len(scope.disks) == 1 else f"{process} {device}"
    return found


def summary(table: FrameTable, scope: Scope) -> str:
    """One line: how many, and the part of the device's I/O that is of nobody listed."""
    count = len(table.rows)
    if scope.submitter:
        return f"{count} device{'' if count == 1 else 's'} with I/O of {scope.title}"
    processes = len({parts_of(key)[1] for key in table.rows.keys})
    text = f"{processes} process{'' if processes == 1 else 'es'} with I/O on {scope.title}"
    share = table.columns["share_pct"]
    if len(scope.disks) == 1 and not scope.cgroup and count and np.isfinite(share).any():
        rest = 100.0 - float(np.nansum(share))
        if rest >= 1.0:
            text += f"; {rest:.0f} % is of others, or of no known process"
    return text


def why_none(frame: Frame) -> str:
    """Say why there is no I/O by process."""
    notices = [notice for notice in frame.topology.host.notices if notice.startswith("no exact time")]
    return notices[0] if notices else "I/O by process needs exact time, which was not measured here"
