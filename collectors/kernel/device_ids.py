"""Persistent identifiers of disks: WWID, NGUID, EUI, UUID or serial."""

from __future__ import annotations

from collections.abc import Mapping

from collectors.kernel.sysfs_text import text

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
    """Return the serial number: of virtio-blk at the disk, of NVMe at the controller, of SCSI in VPD page 80h."""
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
