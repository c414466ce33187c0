"""Reads all caches of the host."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from collectors.model import MISSING, Rows, Table
from collectors.sampling.reading import Reading
from collectors.tables.cache.bcaches import Bcaches
from collectors.tables.cache.dm_caches import MappedCaches
from collectors.tables.cache.page_caches import PageCaches
from collectors.tables.cache.schema import CACHE, CacheEntry
from collectors.tables.cache.zfs import read_zfs
from engine.events import Event, EventKind

_NO_DISKS = Rows((), ())
_COLUMNS = {column.id: position for position, column in enumerate(CACHE.columns)}


class CacheCollector:
    """Reads the CACHE table; returns none on a host without caches."""

    def __init__(
        self,
        procfs: str,
        sysfs: str,
        disks: Callable[[], Table | None],
        *,
        mapped: MappedCaches | None = None,
        pages: PageCaches | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            procfs: root of procfs.
            sysfs: root of sysfs.
            disks: the latest table of block counters, which names the devices.
            mapped: reader of the device mapper; None without the rights.
            pages: reader of the page cache of the targets of the load.
        """
        self._procfs = procfs
        self._disks = disks
        self._mapped = mapped
        self._pages = pages
        self._bcaches = Bcaches(sysfs)
        self._rows = Rows((), ())

    def read(self) -> Reading:
        """Read all counters; those that a cache does not have are MISSING."""
        entries = tuple(self._entries())
        if not entries and not len(self._rows):
            return Reading()
        self._follow(entries)
        unknown = () if self._pages is None else self._pages.take_unknown()
        events = tuple(Event.now(EventKind.MONITOR, text) for text in unknown)
        return Reading({CACHE.name: Table(CACHE, self._rows, table_values(entries))}, events=events)

    def close(self) -> None:
        """Close the control device of the device mapper and the targets."""
        if self._mapped is not None:
            self._mapped.close()
        if self._pages is not None:
            self._pages.close()

    def _entries(self) -> Iterator[CacheEntry]:
        table = self._disks()
        disks = _NO_DISKS if table is None else table.rows
        if self._mapped is not None:
            yield from self._mapped.entries(disks)
        yield from self._bcaches.entries(disks, time.monotonic_ns())
        yield from read_zfs(self._procfs)
        if self._pages is not None:
            yield from self._pages.entries()

    def _follow(self, entries: Sequence[CacheEntry]) -> None:
        keys, names = tuple(entry.key for entry in entries), tuple(entry.name for entry in entries)
        if (keys, names) != (self._rows.keys, self._rows.names):
            self._rows = Rows(keys, names)


def table_values(entries: Sequence[CacheEntry]) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """Raw values, one row per cache."""
    values = np.full((len(entries), len(CACHE.columns)), MISSING, np.uint64)
    for row, entry in enumerate(entries):
        for column, value in entry.values.items():
            values[row, _COLUMNS[column]] = min(value, int(MISSING) - 1)
    return values
