"""Tape drives: their identity and location, and their counters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from collectors.kernel.device_ids import unit_serial
from collectors.kernel.identity import storable_name
from collectors.kernel.sysfs import SysfsLocation, location_of, number, text
from collectors.model import MISSING, Rows, Table
from collectors.sampling.reading import Reading
from collectors.tables.tape.schema import TAPE
from engine._native import read_attributes
from engine.hostfs.kernel_files import entries_of, link_target

CLASS = "class/scsi_tape"
_DRIVE = re.compile(r"st\d+")
"""Each drive has a node per mode (st0l, nst0, nst0a, ...), all with the same counters."""
_FACTS = ("device/vendor", "device/model", "device/wwid", "device/vpd_pg80", "device/state")


class TapeRecord(Struct, frozen=True):
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
    found = [entry for entry in entries_of(f"{sysfs}/{CLASS}") if _DRIVE.fullmatch(entry)]
    return sorted(found, key=lambda entry: int(entry[2:]))


def drive_links(sysfs: str, entries: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield names of drives with their link targets; empty if unreadable."""
    for entry in entries:
        yield entry, storable_name(link_target(f"{sysfs}/{CLASS}/{entry}"))


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


_FILES = (
    "read_cnt",
    "write_cnt",
    "other_cnt",
    "read_byte_cnt",
    "write_byte_cnt",
    "read_ns",
    "write_ns",
    "io_ns",
    "resid_cnt",
    "in_flight",
)
"""Files below SYSFS/class/scsi_tape/stN/stats, in the order of the TAPE columns (Linux 4.2 and later)."""
_ATTRIBUTES = tuple(f"stats/{name}" for name in _FILES)


class TapeCollector:
    """Reads the TAPE table; returns none on a host without tape drives."""

    def __init__(self, sysfs: str = "/sys") -> None:
        self._sysfs = sysfs
        self._links: tuple[tuple[str, str], ...] = ()
        self._rows = Rows((), ())

    @property
    def rows(self) -> Rows:
        """Drives of the last table; the same object until a drive is added or removed."""
        return self._rows

    def read(self) -> Reading:
        """Read all counters; unsupported ones are MISSING."""
        entries = drive_entries(self._sysfs)
        if not entries and not len(self._rows):
            return Reading()
        self._follow(entries)
        values = np.full((len(self._rows), len(TAPE.columns)), MISSING, np.uint64)
        if entries:
            found = read_attributes(f"{self._sysfs}/{CLASS}", entries, _ATTRIBUTES)
            for row, texts in enumerate(found):
                counts = [number(text) for text in texts]
                values[row] = [MISSING if count is None else count for count in counts]
        return Reading({TAPE.name: Table(TAPE, self._rows, values)})

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _follow(self, entries: list[str]) -> None:
        links = tuple(drive_links(self._sysfs, entries))
        if links != self._links:
            self._links = links
            self._rows = Rows(tuple(drive_key(*link) for link in links), tuple(name for name, _ in links))
