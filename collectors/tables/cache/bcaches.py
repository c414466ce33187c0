"""bcache from sysfs (Documentation/admin-guide/bcache.rst)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from collectors.kernel.sysfs import number, text
from collectors.model import Rows
from collectors.tables.cache.schema import CacheEntry, cache_key
from engine._native import read_attributes

PERIOD_NS = 300 * 10**9 // 22
"""The kernel adds its counts to the files 22 times in 5 minutes (accounting_delay, drivers/md/bcache/stats.c)."""
_COUNTS = {
    "stats_total/cache_hits": "read_hits",
    "stats_total/cache_misses": "read_misses",
    "stats_total/cache_bypass_hits": "bypass_hits",
    "stats_total/cache_bypass_misses": "bypass_misses",
    "stats_five_minute/cache_hit_ratio": "recent_hit_percent",
}
_ATTRIBUTES = tuple(
    f"bcache/{name}"
    for name in (
        *_COUNTS,
        "stats_total/bypassed",
        "dirty_data",
        "cache_mode",
        "state",
        "cache/cache0/nbuckets",
        "cache/bucket_size",
    )
)
_SIZE = re.compile(r"(-?\d{1,20})(?:\.(\d))?([kMGTPEZY]?)")
_COUNTED = ("read_hits", "read_misses", "read_bypasses")


def size_bytes(words: str) -> int | None:
    """Read a size as bcache prints it, in powers of 1024 with one decimal: 512, 4.0k, 1.2G; None for anything else."""
    found = _SIZE.fullmatch(words)
    if found is None:
        return None
    whole, tenth, unit = found.groups()
    factor = int(1024 ** " kMGTPEZY".index(unit or " "))
    return max(0, int(whole) * factor + int(tenth or 0) * factor // 10)


class _Seen(Struct, frozen=True):
    values: Mapping[str, int]
    time_ns: int


class Bcaches:
    """Reads all bcache devices, and how long their counts took to increase."""

    def __init__(self, sysfs: str) -> None:
        self._folder = f"{sysfs}/block"
        self._seen: dict[str, _Seen] = {}
        self._disks: Rows | None = None
        self._ours: list[tuple[str, str]] = []
        """Keys and names of the bcache devices among these disks."""

    def entries(self, disks: Rows, now_ns: int) -> Iterator[CacheEntry]:
        """Yield the bcache devices among these disks; `now_ns` is monotonic."""
        if disks is not self._disks:
            named = zip(disks.keys, disks.names, strict=True)
            self._disks, self._ours = disks, [(key, name) for key, name in named if name.startswith("bcache")]
        ours = self._ours
        if not ours:
            self._seen = {}
            return
        try:
            found = read_attributes(self._folder, [name for _, name in ours], _ATTRIBUTES)
        except OSError:
            return
        seen: dict[str, _Seen] = {}
        for (key, name), values in zip(ours, found, strict=True):
            facts = dict(zip(_ATTRIBUTES, values, strict=True))
            mode, counts = bcache_values(facts)
            counted_ns = self._counted_ns(key, counts, now_ns)
            seen[key] = _Seen(counts, now_ns)
            row = counts if counted_ns is None else {**counts, "counted_ns": counted_ns}
            yield CacheEntry(cache_key("bcache", key), f"{name} bcache {mode}".rstrip(), row)
        self._seen = seen

    def _counted_ns(self, key: str, counts: Mapping[str, int], now_ns: int) -> int | None:
        """Time in which the counts grew: one period of the kernel at least, or the interval if it is longer."""
        before = self._seen.get(key)
        if before is None or all(before.values.get(name) == counts.get(name) for name in _COUNTED):
            return 0
        return max(PERIOD_NS, now_ns - before.time_ns)


def bcache_values(facts: Mapping[str, bytes | None]) -> tuple[str, dict[str, int]]:
    """Mode and raw values of one device, from its attributes below SYSFS/block."""
    counts = {name: number(facts[f"bcache/{file}"]) for file, name in _COUNTS.items()}
    bypassed = (counts.pop("bypass_hits"), counts.pop("bypass_misses"))
    sizes = {
        "bypass_bytes": size_bytes(text(facts["bcache/stats_total/bypassed"])),
        "dirty_bytes": size_bytes(text(facts["bcache/dirty_data"])),
        "size_bytes": _size_of_set(facts),
    }
    values = {name: value for name, value in (counts | sizes).items() if value is not None}
    if bypassed[0] is not None and bypassed[1] is not None:
        values["read_bypasses"] = bypassed[0] + bypassed[1]
    values["failed"] = int(text(facts["bcache/state"]) == "inconsistent")
    mode = re.search(r"\[(\w+)\]", text(facts["bcache/cache_mode"]))
    attached = text(facts["bcache/state"]) != "no cache"
    return ("detached" if not attached else mode[1] if mode else ""), values


def _size_of_set(facts: Mapping[str, bytes | None]) -> int | None:
    buckets = number(facts["bcache/cache/cache0/nbuckets"])
    bucket_bytes = size_bytes(text(facts["bcache/cache/bucket_size"]))
    return None if buckets is None or bucket_bytes is None else buckets * bucket_bytes
