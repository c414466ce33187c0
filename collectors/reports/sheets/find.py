"""The LUN, path or port that a name means, and its sheet."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from collectors.graph import Lun, Path, Port
from collectors.kernel.device_ids import plain_wwid
from collectors.model import Topology
from collectors.reports.sheets.lun_sheet import lun_sheet
from collectors.reports.sheets.path_sheet import path_sheet
from collectors.reports.sheets.port_sheet import port_sheet
from collectors.reports.sheets.sheet import Sheet, SheetData
from engine.errors import UsageError
from engine.text import safe_text, short_text


class SheetKind(StrEnum):
    """What a sheet is about."""

    LUN = "lun"
    PATH = "path"
    PORT = "port"


def find_sheet(kind: SheetKind, name: str, data: SheetData) -> Sheet:
    """Make the sheet of what a name means: kernel name, alias, WWID, WWPN or address.

    Raises:
        UsageError: nothing has this name.
    """
    key = next((key for key, names in _names(kind, data.topology) if name in names), None)
    sheet = None if key is None else sheet_of_key(kind, key, data)
    if sheet is None:
        shown = safe_text(short_text(name, 80))
        what = {SheetKind.LUN: "LUN", SheetKind.PATH: "path", SheetKind.PORT: "HBA port"}[kind]
        raise UsageError(f"'{shown}': no such {what} here; `lunscope scan` lists them")
    return sheet


def sheet_of_key(kind: SheetKind, key: str, data: SheetData) -> Sheet | None:
    """Make the sheet of a key of the graph; None if it is not in it."""
    graph = data.topology.graph
    match kind:
        case SheetKind.LUN:
            lun = next((lun for lun in graph.luns if lun.key == key), None)
            return None if lun is None else lun_sheet(lun, data)
        case SheetKind.PATH:
            path = next((path for path in graph.paths if path.key == key), None)
            return None if path is None else path_sheet(path, data)
        case SheetKind.PORT:
            port = next((port for port in graph.ports if port.key == key), None)
            return None if port is None else port_sheet(port, data)


def _names(kind: SheetKind, topology: Topology) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the key of each and all its names."""
    graph = topology.graph
    if kind is SheetKind.LUN:
        yield from ((lun.key, _lun_names(lun, topology)) for lun in graph.luns)
    elif kind is SheetKind.PATH:
        yield from ((path.key, _path_names(path)) for path in graph.paths)
    else:
        yield from ((port.key, _port_names(port)) for port in graph.ports)


def _lun_names(lun: Lun, topology: Topology) -> frozenset[str]:
    device = topology.devices.get(lun.key)
    own = {lun.key, lun.name, f"/dev/{lun.name}"}
    if device is not None:
        alias = device.friendly_name
        own |= {alias, f"/dev/mapper/{alias}" if alias else "", device.persistent_id, plain_wwid(device.persistent_id)}
    return frozenset(own - {""})


def _path_names(path: Path) -> frozenset[str]:
    return frozenset({path.key, path.name, f"/dev/{path.name}", path.address} - {""})


def _port_names(port: Port) -> frozenset[str]:
    return frozenset({port.key, port.name, port.address, port.label, *port.members} - {""})
