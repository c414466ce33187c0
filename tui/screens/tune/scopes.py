"""Scopes of tunables at the cursor: the path, its LUN, its HBA port; the disk; the control group; the NFS mount."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from collectors.graph import Path, Port
from collectors.latency.subjects import NFS, LatencySubject
from collectors.model import Topology
from collectors.tables.nfs.schema import UNKNOWN, nfs_key
from engine.hostfs.kernel_files import unescape_octal
from engine.text import safe_text
from tui.screens.shared.process_scope import Scope


class TuneScope(Struct, frozen=True):
    """What a change is made on."""

    words: str
    """Safe to print."""
    names: tuple[str, ...]
    """Names as `lunscope tune --on` takes them."""


def scopes_at(
    device: str | None, subject: LatencySubject | None, group: Scope | None, topology: Topology
) -> tuple[TuneScope, ...]:
    """List the scopes of a row, the narrowest first.

    Args:
        device: key of the block device under the cursor.
        subject: of the same row; of a port it has the keys of all its paths.
        group: with a control group, if the row is of one.
        topology: of the frame that is shown.
    """
    found: list[TuneScope] = []
    if group is not None and group.cgroup:
        found += _of_group(group, topology)
    if device is not None:
        found += _of_device(device, topology)
    elif subject is not None and subject.source == NFS:
        found += _of_mounts(subject)
    elif subject is not None and subject.keys:
        found += _of_port(subject.keys, topology)
    return tuple(found)


def _of_group(group: Scope, topology: Topology) -> Iterator[TuneScope]:
    for key in sorted(group.disks):
        device = topology.devices.get(key)
        if device is not None:
            words = f"control group {group.cgroup} on {device.name}"
            yield TuneScope(safe_text(words), (f"cgroup:{group.cgroup}@{device.name}",))


def _of_device(key: str, topology: Topology) -> Iterator[TuneScope]:
    device, graph = topology.devices.get(key), topology.graph
    if device is None:
        return
    path = next((path for path in graph.paths if path.key == key and path.lun != key), None)
    lun_key = key if path is None else path.lun
    lun = next((lun for lun in graph.luns if lun.key == lun_key and lun.multipath), None)
    name = safe_text(device.name)
    if lun is None:
        yield TuneScope(f"disk {name}", (device.name,))
        return
    members = graph.of_lun(lun)
    above = topology.devices.get(lun.key)
    whole = TuneScope(
        f"{_count(len(members), 'path')} of LUN {safe_text(lun.name)}, and its map",
        (f"lun:{device.name if above is None else above.name}",),
    )
    if path is None:
        yield from (whole, TuneScope(f"LUN {safe_text(lun.name)} alone, without its paths", (device.name,)))
        return
    yield from (TuneScope(f"path {name} alone", (device.name,)), whole)
    yield from _through_port(path, topology)


def _through_port(path: Path, topology: Topology) -> Iterator[TuneScope]:
    port = next((port for port in topology.graph.ports if port.key == path.port), None)
    if port is not None:
        yield _port_scope(port, sum(one.port == port.key for one in topology.graph.paths))


def _of_mounts(subject: LatencySubject) -> Iterator[TuneScope]:
    points = (nfs_key(key).point for key in sorted(subject.keys))
    for point in (unescape_octal(each) for each in points if each != UNKNOWN):
        yield TuneScope(f"NFS mount {safe_text(point)}", (f"nfs:{point}",))


def _of_port(keys: frozenset[str], topology: Topology) -> Iterator[TuneScope]:
    graph = topology.graph
    ports = {path.port for path in graph.paths if path.key in keys}
    for port in graph.ports:
        if ports == {port.key}:
            yield _port_scope(port, len(keys))


def _port_scope(port: Port, paths: int) -> TuneScope:
    name = port.address if port.transport == "fc" and port.address.startswith("0x") else port.name
    return TuneScope(f"{_count(paths, 'path')} through HBA port {safe_text(port.name)}", (f"port:{name}",))


def _count(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"all {number:,} {what}s"
