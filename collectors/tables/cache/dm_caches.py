"""dm-cache and dm-writecache from the device mapper. Needs root; read-only.

Formats: Documentation/admin-guide/device-mapper/cache.rst and writecache.rst.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from msgspec import Struct

from collectors.kernel.identity import SECTOR_BYTES, number_of
from collectors.model import Rows
from collectors.tables.cache.schema import CacheEntry, cache_key
from engine._native import is_sysfs
from engine.hostfs.dm_control import CONTROL, Number, first_target
from engine.text import whole_number

SEARCH_PERIOD_S = 10.0
"""Interval at which maps are searched for caches: a table may be exchanged under a name, as lvconvert does."""
_TARGETS = {"cache": "dm-cache", "writecache": "dm-writecache"}
_MODES = ("writeback", "writethrough", "passthrough")


def parse_cache(status: str) -> tuple[str, dict[str, int]]:
    """Parse the status of dm-cache: its mode and the raw values; the word Fail means that it is switched off.

    `md_block used/total cache_block used/total read_hits read_misses write_hits write_misses demotions promotions
    dirty #features f... #core a... policy #args a... rw|ro needs_check|-`; block sizes in sectors.

    Raises:
        ValueError: an unknown format.
    """
    words = status.split()
    if words[:1] == ["Fail"]:
        return "", {"failed": 1}
    if len(words) < 12:
        raise ValueError(status)
    metadata_block, block = (_count(words[at]) * SECTOR_BYTES for at in (0, 2))
    metadata_used, metadata_size = map(_count, words[1].split("/"))
    used, size = map(_count, words[3].split("/"))
    names = ("read_hits", "read_misses", "write_hits", "write_misses", "demotions", "promotions")
    features = words[12 : 12 + _count(words[11])]
    mode = next((word for word in features if word in _MODES), "")
    return mode, {
        **dict(zip(names, map(_count, words[4:10]), strict=True)),
        "dirty_bytes": _count(words[10]) * block,
        "used_bytes": used * block,
        "size_bytes": size * block,
        "metadata_used_bytes": metadata_used * metadata_block,
        "metadata_size_bytes": metadata_size * metadata_block,
        "failed": int("needs_check" in words[-1:]),
    }


def parse_writecache(status: str, block_bytes: int) -> dict[str, int]:
    """Parse the status of dm-writecache: 14 fields, the first four before Linux 5.15.

    Kernels count requests in the fields 5 to 11; blocks since Linux 6.0, and in stable kernels that have the change.

    Raises:
        ValueError: an unknown format.
    """
    words = [_count(word) for word in status.split()]
    if len(words) < 4:
        raise ValueError(status)
    error, blocks, free, writeback = words[:4]
    values = {
        "failed": int(error != 0),
        "size_bytes": blocks * block_bytes,
        "used_bytes": max(0, blocks - free) * block_bytes,
        "dirty_bytes": max(0, blocks - free) * block_bytes,
        "writeback_bytes": writeback * block_bytes,
    }
    return values if len(words) < 14 else values | _writecache_counts(words[4:14])


def _writecache_counts(words: list[int]) -> dict[str, int]:
    reads, read_hits, _, uncommitted, committed, bypassed, allocated, blocked, flushes, discards = words
    return {
        "read_hits": read_hits,
        "read_misses": max(0, reads - read_hits),
        "write_hits": uncommitted + committed,
        "write_misses": allocated,
        "write_bypasses": bypassed,
        "blocked": blocked,
        "flushes": flushes,
        "discards": discards,
    }


def writecache_block_bytes(table: str) -> int:
    """Read the block size from the table of dm-writecache: `p|s origin cache block_size ...`.

    Raises:
        ValueError: an unknown format.
    """
    words = table.split()
    if len(words) < 4:
        raise ValueError(table)
    return _count(words[3])


def _count(word: str) -> int:
    value = whole_number(word)
    if value is None:
        raise ValueError(word)
    return value


class MappedCache(Struct, frozen=True):
    """One map whose target is a cache."""

    key: str
    """Key of its block device."""
    name: str
    number: Number
    kind: str
    block_bytes: int
    """Block size of dm-writecache; 0 for dm-cache, whose status has it."""


class MappedCaches:
    """Finds the maps that are caches now and then, and reads their status at every tick."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._control: int | None = None
        self._rows: Rows | None = None
        self._next_search_s = 0.0
        self._caches: tuple[MappedCache, ...] = ()

    @classmethod
    def of_host(cls, sysfs: str) -> MappedCaches | None:
        """Return the reader; None without the rights, or if `sysfs` is not of the running kernel."""
        if not is_sysfs(sysfs) or not os.access(CONTROL, os.R_OK | os.W_OK):
            return None
        return cls()

    def entries(self, disks: Rows) -> Iterator[CacheEntry]:
        """Yield the caches among these disks; one that vanished meanwhile, or has another format, is left out."""
        control = self._opened()
        if control is None:
            return
        now_s = self._clock_s()
        if disks is not self._rows or now_s >= self._next_search_s:
            self._caches = tuple(_caches(control, disks))
            self._rows, self._next_search_s = disks, now_s + SEARCH_PERIOD_S
        for cache in self._caches:
            status = first_target(control, cache.number, table=False)
            if status is not None and _TARGETS.get(status[0]) == cache.kind:
                entry = cache_entry(cache, status[1])
                if entry is not None:
                    yield entry

    def close(self) -> None:
        """Close the control device."""
        if self._control is not None:
            os.close(self._control)
            self._control = None

    def _opened(self) -> int | None:
        if self._control is None:
            try:
                self._control = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
            except OSError:
                return None
        return self._control


def cache_entry(cache: MappedCache, status: str) -> CacheEntry | None:
    """Make the row of a cache from its status; None if its format is unknown."""
    try:
        mode, values = parse_cache(status) if cache.kind == "dm-cache" else ("", _writecache(cache, status))
    except ValueError:
        return None
    return CacheEntry(cache_key(cache.kind, cache.key), " ".join(filter(None, (cache.name, cache.kind, mode))), values)


def _writecache(cache: MappedCache, status: str) -> dict[str, int]:
    return parse_writecache(status, cache.block_bytes)


def _caches(control: int, disks: Rows) -> Iterator[MappedCache]:
    for key, name in zip(disks.keys, disks.names, strict=True):
        number = number_of(key) if name.startswith("dm-") else None
        found = None if number is None else first_target(control, number, table=True)
        kind = None if found is None else _TARGETS.get(found[0])
        if number is None or found is None or kind is None:
            continue
        try:
            block_bytes = writecache_block_bytes(found[1]) if kind == "dm-writecache" else 0
        except ValueError:
            continue
        yield MappedCache(key, name, number, kind, block_bytes)
