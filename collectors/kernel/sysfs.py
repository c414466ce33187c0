"""Attributes of sysfs as Python values, classes of devices, and the location of a device from the target of its link.

The folders of the path name the PCI function, the SCSI host, the session or remote port, the target and the LUN
(drivers/scsi/scsi_sysfs.c, scsi_transport_*.c; drivers/nvme/host/core.c, multipath.c).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from collectors.kernel.identity import storable_name
from engine._native import read_attributes
from engine.hostfs.kernel_files import entries_of, link_target
from engine.text import whole_number


def text(value: bytes | None) -> str:
    """Decode text without the padding of drivers; bytes that are not UTF-8 are escaped."""
    return "" if value is None else storable_name(value.decode("utf-8", "surrogateescape")).strip(" \t\n\0")


def number(value: bytes | None) -> int | None:
    """Parse a decimal number of up to 64 bits."""
    found = None if value is None else whole_number(value.strip())
    return found if found is not None and found < 1 << 64 else None


def flag(value: bytes | None) -> bool | None:
    """Parse 0 or 1."""
    count = number(value)
    return None if count is None else count != 0


Facts = Mapping[str, str]

_UNSET = frozenset({"(null)", "<NULL>", "unknown", "Unknown"})
"""Values that drivers print for an unsupported attribute."""


def read_class(sysfs: str, name: str, attributes: Sequence[str]) -> dict[str, Facts]:
    """Attributes of every entry of SYSFS/class/NAME, by entry; empty text where one is missing or not set.

    Entries that vanish meanwhile have empty attributes; a class missing from the kernel has no entries.
    """
    entries = class_entries(sysfs, name)
    try:
        values = read_attributes(f"{sysfs}/class/{name}", entries, attributes)
    except OSError:
        return {}
    return {
        storable_name(entry): dict(zip(attributes, map(_set_text, found), strict=True))
        for entry, found in zip(entries, values, strict=True)
    }


def _set_text(value: bytes | None) -> str:
    found = text(value)
    return "" if found in _UNSET else found


def class_entries(sysfs: str, name: str) -> list[str]:
    """Names of the entries of a class; none if the kernel does not have it."""
    return entries_of(f"{sysfs}/class/{name}")


def class_link(sysfs: str, name: str, entry: str) -> str:
    """Link target of an entry of a class; empty if it cannot be read."""
    return storable_name(link_target(f"{sysfs}/class/{name}/{entry}"))


_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ADDRESS = re.compile(r"/(\d+:\d+:\d+:\d+)(?=/|$)")
_PARTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("host", re.compile(r"host\d+")),
    ("remote_port", re.compile(r"rport-\d+:\d+-\d+")),
    ("session", re.compile(r"session\d+")),
    ("end_device", re.compile(r"end_device-[\d:]+")),
    ("target", re.compile(r"target\d+:\d+:\d+")),
    ("controller", re.compile(r"nvme\d+")),
    ("subsystem", re.compile(r"nvme-subsys\d+")),
    ("virtio", re.compile(r"virtio\d+")),
    ("ata", re.compile(r"ata\d+")),
    ("usb", re.compile(r"usb\d+")),
)
_GROUPS = frozenset({"block", "virtual", "platform", "net", "nvme-fabrics", "nvme-subsystem", "ctl"})


class SysfsLocation(Struct, frozen=True):
    """Kernel names of the parents of a device; empty where it has none."""

    parent: str = ""
    """The PCI function nearest to the device, else its name on its bus."""
    host: str = ""
    """The SCSI host of the physical port; a virtual one (NPIV) is below it."""
    remote_port: str = ""
    session: str = ""
    end_device: str = ""
    target: str = ""
    controller: str = ""
    subsystem: str = ""
    """The subsystem of a multipath head, which is below no controller."""
    virtio: str = ""
    ata: str = ""
    usb: str = ""
    virtual: bool = False
    """Whether it is on no bus: loop, dm, md, zram."""


NOWHERE = SysfsLocation()


def location_of(link: str, entry: str) -> tuple[SysfsLocation, str]:
    """Parse a link such as `../devices/pci0000:00/0000:00:03.0/virtio1/host0/target0:0:1/0:0:1:0/block/sda`.

    Args:
        link: link target of the entry in SYSFS/block; empty if it cannot be read.
        entry: name of that entry.

    Returns:
        The location, one object for all disks at it, and the SCSI address H:C:T:L, empty if it has none.
    """
    head, _, last = link.rpartition("/")
    if last != entry:
        return NOWHERE, ""
    found = _ADDRESS.search(head)
    return (_location_in(head[: found.start()]), found[1]) if found else (_location_in(head), "")


@lru_cache(maxsize=4096)
def _location_in(folder: str) -> SysfsLocation:
    """Return all parts but the LUN; many disks share them."""
    parts = folder.rsplit("/devices/", maxsplit=1)[-1].split("/")
    found: dict[str, str] = {}
    for name, pattern in _PARTS:
        matches = [part for part in parts if pattern.fullmatch(part)]
        if matches:
            # The first host is the physical one; the nearest of all other parts to the device counts.
            found[name] = matches[0] if name == "host" else matches[-1]
    functions = [part for part in parts if _PCI.fullmatch(part)]
    virtual = parts[0] == "virtual" and found.keys() <= {"subsystem"}
    return SysfsLocation(parent=functions[-1] if functions else _bus_parent(parts), virtual=virtual, **found)


def _bus_parent(parts: list[str]) -> str:
    """Name a parent that is not on PCI: the first folder that is not one of the kernel's groups."""
    named = next((part for part in parts if part not in _GROUPS), "")
    return "" if _PARTS[0][1].fullmatch(named) else named
