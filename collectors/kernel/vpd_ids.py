"""What VPD page 83h says of the port a disk was reached through (SPC-4, 7.8.6): its name, its number, its group."""

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
    """Identities of the far end of a path; empty or None where the page does not say."""

    port: str = ""
    """naa., eui. or a SCSI name such as iqn.2001-04.com.example,t,0x0001."""
    relative_port: int | None = None
    """Number of the port in its target, from 1."""
    group: int | None = None
    """Target port group: the ports of one controller change their ALUA state together."""
    device: str = ""
    """Name of the whole target."""


NO_IDS = TargetIds()


def target_ids(page: bytes | None) -> TargetIds:
    """Read the designators of a page; a page that is cut short or of another kind says nothing."""
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
    """Yield association, type and value of each designator that is there whole."""
    place, end = _HEADER, min(len(page), _HEADER + int.from_bytes(page[2:4], "big"))
    while place + _DESIGNATOR <= end:
        start = place + _DESIGNATOR
        place = start + page[place + 3]
        if place > end:
            return
        yield page[start - 3] >> 4 & 3, page[start - 3] & 15, page[start:place]


def _name(found: list[tuple[int, int, bytes]], association: int) -> str:
    """Pick the name that is unique in the world: NAA, then EUI, then a SCSI name."""
    values = {kind: value for its, kind, value in reversed(found) if its == association}
    for kind in (_NAA, _EUI):
        if kind in values:
            return _PREFIXES[kind] + values[kind].hex()
    return text(values.get(_NAME))


def _number(found: list[tuple[int, int, bytes]], kind: int) -> int | None:
    """Read the last two bytes of a designator of the port."""
    value = next((value for its, its_kind, value in found if (its, its_kind) == (_OF_PORT, kind)), b"")
    return int.from_bytes(value[2:4], "big") if len(value) == 4 else None
