"""The ARC of ZFS, its parts, L2ARC, and reads of pools that never met the ARC.

Formats: module/os/linux/spl/spl-kstat.c; names: arc_stats in include/sys/arc_impl.h and spa_iostats in spa_stats.c of
OpenZFS.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from collectors.kernel.identity import storable_name
from collectors.tables.cache.schema import CacheEntry, cache_key
from engine.hostfs.kernel_files import read_text
from engine.text import whole_number

FOLDER = "spl/kstat/zfs"
"""Folder below procfs."""
_UNSIGNED, _SIGNED = "4", "3"
"""Types of the values read here (KSTAT_DATA_UINT64, KSTAT_DATA_INT64)."""
_MOST_POOLS = 256

_LOOKUPS = {
    "demand data": "demand_data",
    "demand metadata": "demand_metadata",
    "prefetch data": "prefetch_data",
    "prefetch metadata": "prefetch_metadata",
}
"""Parts by who asked, with the start of their names; each has hits, iohits and misses."""
_STATES = {
    "mru": "mru",
    "mfu": "mfu",
    "mru ghost": "mru_ghost",
    "mfu ghost": "mfu_ghost",
    "uncached": "uncached",
}
"""Lists of the ARC; a ghost list holds headers only: a hit in it is a miss that a larger list would have served."""


def parse_kstat(text: str) -> dict[str, int]:
    """Parse a named kstat: one line of header, one of titles, then `name type value`; negative values are left out."""
    found: dict[str, int] = {}
    for line in text.splitlines()[2:]:
        words = line.split()
        if len(words) == 3 and words[1] in {_UNSIGNED, _SIGNED}:
            value = whole_number(words[2])
            if value is not None and value >= 0:
                found[words[0]] = value
    return found


def arc_entries(stats: Mapping[str, int]) -> Iterator[CacheEntry]:
    """Yield the ARC, its parts and L2ARC; nothing if these are no statistics of an ARC."""
    if "hits" not in stats:
        return
    whole = _named(
        stats, used_bytes="size", size_bytes="c_max", target_bytes="c", blocked="memory_throttle_count"
    ) | _lookups(stats, "")
    metadata = _named(stats, metadata_used_bytes="arc_meta_used")
    yield CacheEntry(cache_key("arc", ""), "arc", whole | metadata)
    for part, start in _LOOKUPS.items():
        yield CacheEntry(cache_key("arc", part), f"arc {part}", _lookups(stats, f"{start}_"))
    for part, start in _STATES.items():
        values = _named(stats, read_hits=f"{start}_hits", used_bytes=f"{start}_size")
        if values:
            yield CacheEntry(cache_key("arc", part), f"arc {part}", values)
    if stats.get("l2_size", 0) or stats.get("l2_hits", 0):
        values = _named(stats, read_hits="l2_hits", read_misses="l2_misses", used_bytes="l2_asize")
        yield CacheEntry(cache_key("l2arc", ""), "l2arc", values)


def _lookups(stats: Mapping[str, int], start: str) -> dict[str, int]:
    return _named(stats, read_hits=f"{start}hits", read_inflight_hits=f"{start}iohits", read_misses=f"{start}misses")


def _named(stats: Mapping[str, int], **names: str) -> dict[str, int]:
    return {column: stats[name] for column, name in names.items() if name in stats}


def pool_entry(pool: str, stats: Mapping[str, int]) -> CacheEntry | None:
    """Make the row of a pool: reads that went to its devices, by way of the ARC (misses) or past it, and direct writes.

    The ARC does not count by pool. None without the statistics (before OpenZFS 2.3).
    """
    values = _named(
        stats, read_misses="arc_read_count", read_bypasses="direct_read_count", write_bypasses="direct_write_count"
    )
    if "read_bypasses" not in values:
        return None
    values["bypass_bytes"] = stats.get("direct_read_bytes", 0) + stats.get("direct_write_bytes", 0)
    return CacheEntry(cache_key("zfs", pool), f"{pool} zfs", values)


def read_zfs(procfs: str) -> Iterator[CacheEntry]:
    """Yield all rows of ZFS; none on a host without it."""
    folder = f"{procfs}/{FOLDER}"
    text = read_text(f"{folder}/arcstats")
    if text is None:
        return
    yield from arc_entries(parse_kstat(text))
    for pool in _pools(folder):
        found = read_text(f"{folder}/{pool}/iostats")
        entry = None if found is None else pool_entry(storable_name(pool), parse_kstat(found))
        if entry is not None:
            yield entry


def _pools(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))[:_MOST_POOLS]
    except OSError:
        return []
