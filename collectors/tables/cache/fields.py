"""Figures of caches."""

from __future__ import annotations

from functools import partial

from collectors.field import Field, Thresholds, Unit
from engine.statistics.verdict import Better

TABLE = "caches"


_ARC = "/proc/spl/kstat/zfs/arcstats"
_DM = "status of the map (DM_TABLE_STATUS)"
_BCACHE = "/sys/block/bcache*/bcache/stats_total"
_INFLIGHT, _BYPASS = f"{_ARC}: iohits", f"{_DM}; {_BCACHE}; /proc/spl/kstat/zfs/POOL/iostats"
_DIRTY, _USED = f"{_DM}; /sys/block/bcache*/bcache/dirty_data; cachestat(2)", f"{_DM}; {_ARC}; cachestat(2), mincore(2)"

_cache = partial(Field, table=TABLE, source=f"{_DM}; {_BCACHE}; {_ARC}")
_share = partial(_cache, unit=Unit.PERCENT)
_per_s = partial(_cache, unit=Unit.PER_SECOND, better=Better.NEITHER)
_bytes = partial(_cache, unit=Unit.BYTES, better=Better.NEITHER)

FIELDS: tuple[Field, ...] = (
    _share(
        "hit_pct",
        "hit",
        "Lookups served by the cache, reads and writes; those that waited for an I/O already under way are not hits.",
        better=Better.HIGHER,
    ),
    _share(
        "inflight_hit_pct",
        "in-flight",
        "Lookups that waited for an I/O already under way, most of them prefetch (iohits of the ARC).",
        better=Better.NEITHER,
        source=_INFLIGHT,
    ),
    _share("miss_pct", "miss", "Lookups that went to the device below.", better=Better.LOWER),
    _share(
        "bypass_pct",
        "bypass",
        "I/Os that never met the cache, of all; of a ZFS pool: direct reads, of those that went to its devices.",
        hot=Thresholds(25, 75),
        better=Better.LOWER,
        source=_BYPASS,
    ),
    _per_s(
        "lookups_per_s",
        "look/s",
        "Lookups per second, as the cache counts: requests, blocks (dm-writecache, ARC).",
        sums="lookups",
    ),
    _per_s(
        "hits_per_s", "hit/s", "Hits per second; of a ghost list of the ARC: misses that it remembered.", sums="hits"
    ),
    _per_s(
        "inflight_hits_per_s",
        "ioh/s",
        "Lookups per second that waited for an I/O already under way.",
        source=_INFLIGHT,
        sums="read_inflight_hits",
    ),
    _cache("misses_per_s", "miss/s", "Misses per second.", Unit.PER_SECOND, better=Better.LOWER, sums="misses"),
    _cache(
        "bypasses_per_s",
        "byp/s",
        "I/Os per second that never met the cache.",
        Unit.PER_SECOND,
        better=Better.LOWER,
        source=_BYPASS,
        sums="bypasses",
    ),
    _cache(
        "blocked_per_s",
        "block/s",
        "Writes per second that waited for free space: dm-writecache is full; the ARC held writers back for memory.",
        Unit.PER_SECOND,
        hot=Thresholds(1, 10),
        better=Better.LOWER,
        source=f"{_DM}; {_ARC}: memory_throttle_count",
        sums="blocked",
    ),
    _bytes("dirty_bytes", "dirty", "Data not yet on the device below.", source=_DIRTY),
    _bytes("used_bytes", "used", "Data in the cache; of a ghost list of the ARC: what it remembers.", source=_USED),
    _bytes(
        "size_bytes",
        "size",
        "Size of the cache; of the ARC its limit (c_max), of a page cache the file's size.",
        source=_USED,
    ),
    _share(
        "used_pct",
        "%used",
        "Used part of the cache; of a page cache the part of the file in memory.",
        better=Better.NEITHER,
        source=_USED,
    ),
    _share(
        "dirty_pct",
        "%dirty",
        "Dirty part of the cache's size.",
        hot=Thresholds(70, 90),
        better=Better.LOWER,
        source=_DIRTY,
    ),
    _share("read_hit_pct", "r hit", "Hits, of the lookups of reads.", better=Better.HIGHER),
    _share("write_hit_pct", "w hit", "Hits, of the lookups of writes.", better=Better.HIGHER, source=_DM),
    _share(
        "recent_hit_pct",
        "hit 5m",
        "Hits, over about five minutes, as bcache averages them: its counters move every 14 s only.",
        better=Better.HIGHER,
        source="/sys/block/bcache*/bcache/stats_five_minute",
    ),
    _cache(
        "bypass_bytes_per_s",
        "byp B/s",
        "Bytes per second that never met the cache (bcache, direct I/O of ZFS).",
        Unit.BYTES_PER_SECOND,
        better=Better.LOWER,
        source=f"{_BCACHE}; /proc/spl/kstat/zfs/POOL/iostats",
        sums="bypass_bytes",
    ),
    _per_s(
        "promotions_per_s",
        "prom/s",
        "Blocks taken into the cache per second (dm-cache).",
        source=_DM,
        sums="promotions",
    ),
    _per_s(
        "demotions_per_s", "dem/s", "Blocks removed from the cache per second (dm-cache).", source=_DM, sums="demotions"
    ),
    _bytes("target_bytes", "target", "Size the ARC aims at now (c).", source=f"{_ARC}: c"),
    _bytes("writeback_bytes", "wback", "Data being written to the device below.", source=f"{_DM}; cachestat(2)"),
    _share(
        "metadata_used_pct",
        "%meta",
        "Used part of the metadata device (dm-cache).",
        hot=Thresholds(80, 95),
        better=Better.LOWER,
        source=_DM,
    ),
    _per_s("flushes_per_s", "fl/s", "Flush requests per second (dm-writecache).", source=_DM, sums="flushes"),
    _per_s("discards_per_s", "disc/s", "Discard requests per second (dm-writecache).", source=_DM, sums="discards"),
    _cache(
        "failed",
        "fail",
        "1 for a cache that the kernel has switched off, or that needs a check.",
        Unit.COUNT,
        digits=1,
        hot=Thresholds(1, 1),
        better=Better.LOWER,
        source=f"{_DM}; /sys/block/bcache*/bcache/state",
    ),
)
