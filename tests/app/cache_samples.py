"""Samples with caches beside the disks."""

from __future__ import annotations

from collections.abc import Sequence

from collectors.kernel.mapped_targets import MappedTarget
from collectors.model import Rows, Sample, Table
from collectors.tables.cache.dm_caches import cache_entry
from collectors.tables.cache.reader import table_values
from collectors.tables.cache.schema import CACHE, CacheEntry
from collectors.tables.cache.zfs import arc_entries, pool_entry
from engine.replacing import replace
from tests.fake_zfs import ARC, POOL

HOSTILE = "/red\x1b[31m[b]"
_COUNTERS = ("hits", "iohits", "misses")


def with_caches(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """The samples with a full dm-writecache on the last disk, an ARC with its parts, a pool and a file."""
    disk, name = samples[0].tables["disk"].rows.keys[-1], samples[0].tables["disk"].rows.names[-1]
    rows: Rows | None = None
    found = []
    for tick, sample in enumerate(samples):
        entries = _entries(disk, name, tick)
        if rows is None:
            rows = Rows(tuple(entry.key for entry in entries), tuple(entry.name for entry in entries))
        table = Table(CACHE, rows, table_values(entries))
        found.append(replace(sample, tables={**sample.tables, CACHE.name: table}))
    return tuple(found)


def _entries(disk: str, name: str, tick: int) -> list[CacheEntry]:
    mapped = MappedTarget(disk, name, (254, 3), "writecache", "s 254:1 254:2 4096 0")
    reads, writes = 1000 * tick, 500 * tick
    counts = (reads, reads // 4, writes, 0, writes // 2, writes // 4, writes // 4, 40 * tick, tick, 0)
    entry = cache_entry(mapped, f"0 262144 0 2048 {' '.join(map(str, counts))}")
    assert entry is not None
    grown = {key: value * tick if key.endswith(_COUNTERS) else value for key, value in ARC.items()}
    pool = pool_entry("tank", {key: value * tick for key, value in POOL.items()})
    assert pool is not None
    file = CacheEntry(f"page cache|{HOSTILE}", f"{HOSTILE} page cache", {"size_bytes": 1 << 30, "used_bytes": 1 << 28})
    return [entry, *arc_entries(grown), pool, file]
