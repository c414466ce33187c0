"""The raw table of caches, and a row of it as a reader finds it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from collectors.model import Column, Kind, Schema

COUNTERS = (
    "read_hits",
    "read_inflight_hits",
    "read_misses",
    "read_bypasses",
    "write_hits",
    "write_misses",
    "write_bypasses",
    "bypass_bytes",
    "promotions",
    "demotions",
    "blocked",
    "flushes",
    "discards",
)
GAUGES = (
    "size_bytes",
    "used_bytes",
    "target_bytes",
    "dirty_bytes",
    "writeback_bytes",
    "metadata_size_bytes",
    "metadata_used_bytes",
    "recent_hit_percent",
    "failed",
)
CACHE = Schema(
    "cache",
    (
        *(Column(name, Kind.COUNTER) for name in COUNTERS),
        *(Column(name, Kind.GAUGE) for name in GAUGES),
        Column("counted_ns", Kind.INTERVAL),
    ),
)
"""One row per cache, or part of the ARC.

`counted_ns` is the time in which the increase of the counters came about, 0 in intervals without any; MISSING where
they count at once, in which case it is the interval. `failed` is 1 for a cache that the kernel has switched off.
"""

DEVICE_KINDS = ("dm-cache", "dm-writecache", "bcache")
"""Kinds whose rows are all block devices."""


def cache_key(kind: str, what: str) -> str:
    """Key of a row: its kind, and the key of its device, the part of the ARC, the pool or the file."""
    return f"{kind}|{what}"


def kind_of(key: str) -> str:
    """Kind of a row: arc, l2arc, zfs, dm-cache, dm-writecache, bcache or page cache."""
    return key.partition("|")[0]


def subject_of_key(key: str) -> str:
    """Return what follows the kind in the key."""
    return key.partition("|")[2]


class CacheEntry(Struct, frozen=True):
    """Key and name of the row, and the raw values it has, by column of the CACHE table."""

    key: str
    name: str
    values: Mapping[str, int]
