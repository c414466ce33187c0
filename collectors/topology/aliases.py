"""Names the operator gave to LUNs, ports, target ports and tapes, by identity and never by the kernel's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from collectors.model import Device
from collectors.sources.reading_settings import ReadingSettings
from collectors.topology.graph import Graph


def with_aliases(
    devices: Mapping[str, Device], graph: Graph, settings: ReadingSettings
) -> tuple[dict[str, Device], Graph]:
    """Put names in force; a LUN's name stands where that of its map stood, its paths keep the kernel's."""
    if not settings.aliases:
        return dict(devices), graph
    named = dict(devices)
    for lun in graph.luns:
        device = devices.get(lun.key)
        alias = settings.alias_of(device.persistent_id, device.serial) if device is not None else ""
        if device is not None and alias:
            named[lun.key] = replace(device, friendly_name=alias)
    ports = tuple(replace(port, label=settings.alias_of(port.address, port.parent)) for port in graph.ports)
    targets = tuple(replace(target, label=settings.alias_of(target.name)) for target in graph.targets)
    tapes = tuple(replace(tape, label=settings.alias_of(tape.persistent_id)) for tape in graph.tapes)
    return named, replace(graph, ports=ports, targets=targets, tapes=tapes)
