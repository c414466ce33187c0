"""Identity and location of tape drives. The kernel has no diskseq for them; the location identifies them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from collectors.kernel.device_ids import unit_serial
from collectors.kernel.identity import storable_name
from collectors.kernel.sysfs import SysfsLocation, location_of, text
from engine._native import read_attributes

CLASS = "class/scsi_tape"
_DRIVE = re.compile(r"st\d+")
"""Each drive has a node per mode (st0l, nst0, nst0a, ...), all with the same counters."""
_FACTS = ("device/vendor", "device/model", "device/wwid", "device/vpd_pg80", "device/state")


@dataclass(frozen=True, slots=True)
class TapeRecord:
    """sysfs facts of one tape drive."""

    key: str
    name: str
    location: SysfsLocation
    address: str
    """H:C:T:L."""
    vendor: str
    model: str
    wwid: str
    serial: str
    state: str


def drive_entries(sysfs: str) -> list[str]:
    """Drives in natural order; none if the kernel has no tapes."""
    try:
        found = [entry for entry in os.listdir(f"{sysfs}/{CLASS}") if _DRIVE.fullmatch(entry)]  # noqa: PTH208 names
    except OSError:
        return []
    return sorted(found, key=lambda entry: int(entry[2:]))


def drive_links(sysfs: str, entries: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield names of drives with their link targets; empty if unreadable."""
    for entry in entries:
        try:
            yield entry, storable_name(os.readlink(f"{sysfs}/{CLASS}/{entry}"))  # noqa: PTH115 text, not a Path
        except OSError:
            yield entry, ""


def drive_key(name: str, link: str) -> str:
    """Key of a drive: a name reused at another location is another drive."""
    return f"{name}@{location_of(link, name)[1]}"


def read_tapes(sysfs: str) -> list[TapeRecord]:
    """All tape drives with their facts."""
    entries = drive_entries(sysfs)
    if not entries:
        return []
    try:
        facts = read_attributes(f"{sysfs}/{CLASS}", entries, _FACTS)
    except OSError:
        return []
    return [_tape(name, link, found) for (name, link), found in zip(drive_links(sysfs, entries), facts, strict=True)]


def _tape(name: str, link: str, found: Sequence[bytes | None]) -> TapeRecord:
    vendor, model, wwid, page, state = found
    location, address = location_of(link, name)
    return TapeRecord(
        key=drive_key(name, link),
        name=name,
        location=location,
        address=address,
        vendor=text(vendor),
        model=text(model),
        wwid=" ".join(text(wwid).split()),
        serial=unit_serial(page),
        state=text(state),
    )
