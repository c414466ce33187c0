"""The figures of the disks, paths and ports below a load, with what the rules must know of their order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from collectors.advice.figures import NAN, DeviceFigures, FiguresBelow
from collectors.graph import Path, Port
from collectors.reports.run_devices import RunDevices, tier_of
from engine.replacing import replace
from engine.text import safe_text

FIELDS = (
    *("iops", "read_bytes_per_s", "write_bytes_per_s", "bytes_per_s", "await_ms", "queue_ms", "service_ms"),
    *("busy_pct", "in_flight", "queue_limit", "limit_pct"),
)
"""Figures that findings use."""
_FULL_SPEED = frozenset({"optimized", "active/optimized", ""})
"""Access states of paths at full speed; "" is unknown or a disk without such states."""
_FC_BYTES_PER_GBIT = 100e6
"""Fibre Channel of N Gbit/s carries N x 100 MB/s in each direction (FC-PI)."""


def figures_below(devices: RunDevices | None) -> FiguresBelow:
    """Read what was sampled; nothing without samples."""
    if devices is None:
        return FiguresBelow()
    graph = devices.topology.graph
    paths = {path.key: path for path in graph.paths if len(graph.paths_of.get(path.lun, ())) > 1}
    ports = {port.key: port for port in graph.ports}
    return FiguresBelow(
        tuple(_disks(devices)),
        tuple(_path(each, paths[each.key], ports) for each in _rows(devices, "paths") if each.key in paths),
        tuple(_port(each, ports.get(each.key)) for each in _rows(devices, "hbas")),
    )


def _rows(devices: RunDevices, name: str) -> Iterator[DeviceFigures]:
    table = devices.tables.get(name)
    if table is None:
        return
    known = table.columns.keys()
    for row, key in enumerate(table.rows.keys):
        figures = {field_id: table.value(field_id, row) for field_id in FIELDS}
        yield DeviceFigures(
            name=safe_text(table.rows.names[row]),
            key=key,
            targets=tuple(devices.users[name][key]),
            figures={field_id: value for field_id, value in figures.items() if math.isfinite(value)},
            tiers={field_id: tier_of(name, table, row, field_id) for field_id in FIELDS if field_id in known},
        )


def _disks(devices: RunDevices) -> Iterator[DeviceFigures]:
    """Disks with what they are built on; those of a target that no other disk of it is built on are its tops.

    What a loop device is built on is not in the topology: below it are all disks of its target that are none.
    """
    disks, known = list(_rows(devices, "disks")), devices.topology.devices
    loops = {disk.key for disk in disks if disk.key in known and known[disk.key].kind == "loop"}
    below = {disk.key: _below(disk.key, devices) for disk in disks}
    for disk in disks:
        upper = [
            other
            for other in disks
            if disk.key in below[other.key]
            or (other.key in loops and disk.key not in loops and other.key not in below[disk.key])
        ]
        yield replace(
            disk,
            is_top=not {target for other in upper for target in other.targets}.issuperset(disk.targets),
            members=tuple(key for key in below[disk.key] if key in below),
            is_lowest=not below[disk.key] and disk.key not in loops,
        )


def _below(key: str, devices: RunDevices) -> dict[str, None]:
    """Keys of the devices that one is built on, directly or over partitions and mappings."""
    by_name = {device.name: found for found, device in devices.topology.devices.items()}
    layers = {layer.key: layer.below for layer in devices.topology.graph.layers}
    found, waiting = dict[str, None](), [key]
    while waiting:
        one = waiting.pop()
        device = devices.topology.devices.get(one)
        slaves = () if device is None else (by_name[name] for name in device.slaves if name in by_name)
        for lower in (*layers.get(one, ()), *slaves):
            if lower not in found and lower != key:
                found[lower] = None
                waiting.append(lower)
    return found


def _path(figures: DeviceFigures, path: Path, ports: Mapping[str, Port]) -> DeviceFigures:
    port = ports.get(path.port)
    return replace(
        figures,
        lun=path.lun,
        is_usable=path.usable and path.access in _FULL_SPEED,
        transport="" if port is None else port.transport,
    )


def _port(figures: DeviceFigures, port: Port | None) -> DeviceFigures:
    if port is None:
        return figures
    words = port.speed.split()
    link = NAN
    if port.transport == "fc" and len(words) == 2 and words[0].isdigit() and words[1] == "Gbit":
        link = int(words[0]) * _FC_BYTES_PER_GBIT
    return replace(figures, transport=port.transport, link_bytes_per_s=link)
