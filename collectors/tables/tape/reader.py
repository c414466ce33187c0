"""Counters of tape drives."""

from __future__ import annotations

import numpy as np

from collectors.kernel.sysfs import number
from collectors.model import MISSING, Rows, Table
from collectors.sampling.reading import Reading
from collectors.tables.tape.drives import CLASS, drive_entries, drive_key, drive_links
from collectors.tables.tape.schema import TAPE
from engine._native import read_attributes

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
