"""Identifiers in VPD page 83h of the port a disk was reached through (SPC-4, 7.8.6): name, number and group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from collectors.kernel.sysfs_text import text

_HEADER, _DESIGNATOR = 4, 4
_OF_PORT, _OF_DEVICE = 1, 2
"""Associations; 0 is the logical unit itself."""
_EUI, _NAA, _RELATIVE_PORT, _PORT_GROUP, _NAME = 2, 3, 4, 5, 8
"""Types of designators."""
_PREFIXES = {_NAA: "naa.", _EUI: "eui."}


@dataclass(frozen=True, slots=True)
class TargetIds:
    """Identifiers of the target port of a path; empty or None if missing in the page."""

    port: str = ""
    """naa., eui. or a SCSI name such as iqn.2001-04.com.example,t,0x0001."""
    relative_port: int | None = None
    """Number of the port in its target, from 1."""
    group: int | None = None
    """Target port group: the ports of one controller change their ALUA state together."""
    device: str = ""
    """Name of the target device."""


NO_IDS = TargetIds()


def target_ids(page: bytes | None) -> TargetIds:
    """Parse the designators of a page; a truncated page or one of another kind gives none."""
    if page is None or len(page) < _HEADER or page[1] != 0x83:
        return NO_IDS
    found = list(_designators(page))
    return TargetIds(
        port=_name(found, _OF_PORT),
        relative_port=_number(found, _RELATIVE_PORT),
        group=_number(found, _PORT_GROUP),
        device=_name(found, _OF_DEVICE),
    )


def _designators(page: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield association, type and value of each complete designator."""
    position, end = _HEADER, min(len(page), _HEADER + int.from_bytes(page[2:4], "big"))
    while position + _DESIGNATOR <= end:
        start = position + _DESIGNATOR
        position = start + page[position + 3]
        if position > end:
            return
        yield page[start - 3] >> 4 & 3, page[start - 3] & 15, page[start:position]


def _name(found: list[tuple[int, int, bytes]], association: int) -> str:
    """Return the worldwide unique name: NAA, then EUI, then a SCSI name."""
    values = {kind: value for its, kind, value in reversed(found) if its == association}
    for kind in (_NAA, _EUI):
        if kind in values:
            return _PREFIXES[kind] + values[kind].hex()
    return text(values.get(_NAME))


def _number(found: list[tuple[int, int, bytes]], kind: int) -> int | None:
    """Read the last two bytes of a designator of the port."""
    value = next((value for its, its_kind, value in found if (its, its_kind) == (_OF_PORT, kind)), b"")
    return int.from_bytes(value[2:4], "big") if len(value) == 4 else None
