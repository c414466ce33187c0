"""Names and persistent identifiers of disks: WWID, NGUID, EUI, UUID or serial, and those in VPD page 83h."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from msgspec import Struct

from collectors.kernel.sysfs import text
from collectors.model import Device


def label_of(device: Device | None, otherwise: str) -> str:
    """Return the alias or dm name if there is one, else the kernel name."""
    return otherwise if device is None else device.friendly_name or device.name


def both_names(device: Device) -> str:
    """Return the kernel name followed by the operator's name; for a backing file its last part."""
    other = PurePosixPath(device.friendly_name).name
    return device.name if other in {"", device.name} else f"{device.name} {other}"


_HEADER, _DESIGNATOR = 4, 4
_OF_PORT, _OF_DEVICE = 1, 2
"""Associations; 0 is the logical unit itself."""
_EUI, _NAA, _RELATIVE_PORT, _PORT_GROUP, _NAME = 2, 3, 4, 5, 8
"""Types of designators."""
_PREFIXES = {_NAA: "naa.", _EUI: "eui."}


class TargetIds(Struct, frozen=True):
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


_IDS = ("wwid", "device/wwid", "nguid", "eui", "uuid", "dm/uuid", "md/uuid")
"""NVMe has `wwid` at the namespace, SCSI below the device (naa., eui., t10.), device mapper and md have their own."""

VIRTIO_VENDOR = "0x1af4"
"""Red Hat's PCI vendor id, which all virtio devices have (virtio 1.2, 4.1.2)."""

_NO_IDS = frozenset({"", "00000000-0000-0000-0000-000000000000", "none"})


def persistent_id(found: Mapping[str, bytes | None]) -> str:
    """Return the first identity that is set, else the serial; empty if the device has none."""
    for attribute in _IDS:
        value = " ".join(text(found[attribute]).split())
        if value not in _NO_IDS:
            return value
    return serial(found)


def serial(found: Mapping[str, bytes | None]) -> str:
    """Return the serial number: virtio-blk has it at the disk, NVMe at the controller, SCSI in VPD page 80h."""
    return text(found["serial"]) or text(found["device/serial"]) or unit_serial(found["device/vpd_pg80"])


def vendor_name(vendor: str) -> str:
    """Return the vendor name; for virtio disks sysfs has only the PCI vendor id."""
    return "Red Hat (virtio)" if vendor.lower() == VIRTIO_VENDOR else vendor


def plain_wwid(identity: str) -> str:
    """Format an identity as `multipath -ll` and `scsi_id` do: 36000... for naa.6000... and for mpath-36000...

    Identities of other kinds (NVMe, serials) are unchanged.
    """
    plain = identity.removeprefix("mpath-")
    return f"3{plain.removeprefix('naa.')}" if plain.startswith("naa.") else plain


def unit_serial(page: bytes | None) -> str:
    """Find the serial in page 80h (SPC-4, 7.8.15): four bytes of header, the last two the length, then ASCII."""
    if page is None or len(page) < 4 or page[1] != 0x80:
        return ""
    length = int.from_bytes(page[2:4], "big")
    return text(page[4 : 4 + length])
