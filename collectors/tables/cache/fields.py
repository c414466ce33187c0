"""Figures of caches."""

from __future__ import annotations

from typing import Unpack

from collectors.field import Field, Shown, Thresholds, Unit, with_sources
from engine.statistics.verdict import Better

TABLE = "caches"


def _cache(id_: str, title: str, unit: Unit, help_: str, **shown: Unpack[Shown]) -> Field:
    return Field(id_, TABLE, title, unit, help_, **shown)


def _rate(id_: str, title: str, help_: str, better: Better = Better.NEITHER) -> Field:
    return _cache(id_, title, Unit.PER_SECOND, help_, better=better)


def _amount(id_: str, title: str, help_: str) -> Field:
    return _cache(id_, title, Unit.BYTES, help_, better=Better.NEITHER)


FIELDS: tuple[Field, ...] = (
    _cache(
        "hit_pct",
        "hit",
        Unit.PERCENT,
        "Lookups served by the cache, reads and writes; those that waited for an I/O already under way are not hits.",
        better=Better.HIGHER,
    ),
    _cache(
        "inflight_hit_pct",
        "in-flight",
        Unit.PERCENT,
        "Lookups that waited for an I/O already under way, most of them prefetch (iohits of the ARC).",
        better=Better.NEITHER,
    ),
    _cache("miss_pct", "miss", Unit.PERCENT, "Lookups that went to the device below.", better=Better.LOWER),
    _cache(
        "bypass_pct",
        "bypass",
        Unit.PERCENT,
        "I/Os that never met the cache, of all; of a ZFS pool: direct reads, of those that went to its devices.",
        hot=Thresholds(25, 75),
        better=Better.LOWER,
    ),
    _rate("lookups_per_s", "look/s", "Lookups per second, as the cache counts: requests, blocks (dm-writecache, ARC)."),
    _rate("hits_per_s", "hit/s", "Hits per second; of a ghost list of the ARC: misses that it remembered."),
    _rate("inflight_hits_per_s", "ioh/s", "Lookups per second that waited for an I/O already under way."),
    _rate("misses_per_s", "miss/s", "Misses per second.", Better.LOWER),
    _rate("bypasses_per_s", "byp/s", "I/Os per second that never met the cache.", Better.LOWER),
    _cache(
        "blocked_per_s",
        "block/s",
        Unit.PER_SECOND,
        "Writes per second that waited for free space: dm-writecache is full; the ARC held writers back for memory.",
        hot=Thresholds(1, 10),
        better=Better.LOWER,
    ),
    _amount("dirty_bytes", "dirty", "Data not yet on the device below."),
    _amount("used_bytes", "used", "Data in the cache; of a ghost list of the ARC: what it remembers."),
    _amount("size_bytes", "size", "Size of the cache; of the ARC its limit (c_max), of a page cache the file's size."),
    _cache(
        "used_pct",
        "%used",
        Unit.PERCENT,
        "Used part of the cache; of a page cache the part of the file in memory.",
        better=Better.NEITHER,
    ),
    _cache(
        "dirty_pct",
        "%dirty",
        Unit.PERCENT,
        "Dirty part of the cache's size.",
        hot=Thresholds(70, 90),
        better=Better.LOWER,
    ),
    _cache("read_hit_pct", "r hit", Unit.PERCENT, "Hits, of the lookups of reads.", better=Better.HIGHER),
    _cache("write_hit_pct", "w hit", Unit.PERCENT, "Hits, of the lookups of writes.", better=Better.HIGHER),
    _cache(
        "recent_hit_pct",
        "hit 5m",
        Unit.PERCENT,
        "Hits, over about five minutes, as bcache averages them: its counters move every 14 s only.",
        better=Better.HIGHER,
    ),
    _cache(
        "bypass_bytes_per_s",
        "byp B/s",
        Unit.BYTES_PER_SECOND,
        "Bytes per second that never met the cache (bcache, direct I/O of ZFS).",
        better=Better.LOWER,
    ),
    _rate("promotions_per_s", "prom/s", "Blocks taken into the cache per second (dm-cache)."),
    _rate("demotions_per_s", "dem/s", "Blocks removed from the cache per second (dm-cache)."),
    _amount("target_bytes", "target", "Size the ARC aims at now (c)."),
    _amount("writeback_bytes", "wback", "Data being written to the device below."),
    _cache(
        "metadata_used_pct",
        "%meta",
        Unit.PERCENT,
        "Used part of the metadata device (dm-cache).",
        hot=Thresholds(80, 95),
        better=Better.LOWER,
    ),
    _rate("flushes_per_s", "fl/s", "Flush requests per second (dm-writecache)."),
    _rate("discards_per_s", "disc/s", "Discard requests per second (dm-writecache)."),
    _cache(
        "failed",
        "fail",
        Unit.COUNT,
        "1 for a cache that the kernel has switched off, or that needs a check.",
        digits=1,
        hot=Thresholds(1, 1),
        better=Better.LOWER,
    ),
)
_ARC = "/proc/spl/kstat/zfs/arcstats"
_DM = "status of the map (DM_TABLE_STATUS)"
_BCACHE = "/sys/block/bcache*/bcache/stats_total"
_SOURCES = {
    f"{_ARC}: iohits": ("inflight_hit_pct", "inflight_hits_per_s"),
    f"{_ARC}: c": ("target_bytes",),
    f"{_DM}; {_BCACHE}; /proc/spl/kstat/zfs/POOL/iostats": ("bypass_pct", "bypasses_per_s"),
    f"{_BCACHE}; /proc/spl/kstat/zfs/POOL/iostats": ("bypass_bytes_per_s",),
    f"{_DM}; {_ARC}: memory_throttle_count": ("blocked_per_s",),
    "/sys/block/bcache*/bcache/stats_five_minute": ("recent_hit_pct",),
    f"{_DM}; /sys/block/bcache*/bcache/dirty_data; cachestat(2)": ("dirty_bytes", "dirty_pct"),
    f"{_DM}; cachestat(2)": ("writeback_bytes",),
    f"{_DM}; {_ARC}; cachestat(2), mincore(2)": ("used_bytes", "size_bytes", "used_pct"),
    _DM: (
        "write_hit_pct",
        "promotions_per_s",
        "demotions_per_s",
        "metadata_used_pct",
        "flushes_per_s",
        "discards_per_s",
    ),
    f"{_DM}; /sys/block/bcache*/bcache/state": ("failed",),
}
FIELDS = with_sources(FIELDS, _SOURCES, f"{_DM}; {_BCACHE}; {_ARC}")
