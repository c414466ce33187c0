"""Caches: additive sums of an interval, and their figures."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from collectors.derive.counter_deltas import Values, aligned, column_deltas, present, ratio
from collectors.derive.quotients import Quotients
from collectors.model import FrameTable, Rows, Table, Topology
from collectors.sampling.reading import Collector
from collectors.subject import AddedSums, Interval, Report, SampledHost, Subject, any_above, device_identity
from collectors.tables.cache.fields import FIELDS, TABLE
from collectors.tables.cache.schema import CACHE, COUNTERS, DEVICE_KINDS, GAUGES, kind_of, subject_of_key
from engine.text import safe_text

_FILE_KINDS = {"zfs": "pool", "page cache": "path", "arc": "part"}
"""What the rest of the key is where it is no device."""


def cache_tables(interval: Interval, current: Table) -> dict[str, FrameTable]:
    """All fields of caches over one interval."""
    sums = cache_sums(interval.before(CACHE.name), current, interval.elapsed_s)
    return {TABLE: FrameTable(current.rows, cache_figures(sums))}


def cache_sums(previous: Table | None, current: Table, elapsed_s: float) -> dict[str, Values]:
    """Add up an interval, one value per cache, NaN where missing; counters and times are additive over intervals.

    `counted_s` is the time in which the counters grew: the interval, or what the reader found where they grow seldom.
    """
    deltas = column_deltas(current.schema.columns, aligned(previous, current), current.values, elapsed_s=elapsed_s)
    counted_s = deltas["counted_ns"] / 1e9
    known = elapsed_s if previous is not None else np.nan
    return {
        **{name: deltas[name] for name in (*COUNTERS, *GAUGES)},
        "counted_s": np.where(np.isnan(counted_s), known, counted_s),
        "elapsed_s": np.full(deltas.rows, known),
    }


_QUOTIENTS = Quotients(FIELDS)


def cache_figures(sums: Mapping[str, Values]) -> dict[str, Values]:
    """All fields of the sums of an interval, or of several added up."""
    reads, writes = _lookups(sums, "read"), _lookups(sums, "write")
    lookups = _together(reads, writes)
    hits = _together(sums["read_hits"], sums["write_hits"])
    amounts = {
        "lookups": lookups,
        "hits": hits,
        "misses": _together(sums["read_misses"], sums["write_misses"]),
        "bypasses": _together(sums["read_bypasses"], sums["write_bypasses"]),
    }
    shares = {
        "hit_pct": ratio(hits, lookups),
        "inflight_hit_pct": ratio(sums["read_inflight_hits"], lookups),
        "miss_pct": ratio(amounts["misses"], lookups),
        "bypass_pct": _bypass_share(sums),
        "read_hit_pct": ratio(sums["read_hits"], reads),
        "write_hit_pct": ratio(sums["write_hits"], writes),
    }
    rates = _QUOTIENTS.of({**sums, **amounts, "elapsed_s": sums["counted_s"]})
    return rates | {name: 100.0 * share for name, share in shares.items()} | _state(sums)


def _lookups(sums: Mapping[str, Values], way: str) -> Values:
    """Lookups of reads or writes; NaN where the cache does not count both hits and misses."""
    found = sums[f"{way}_hits"] + sums[f"{way}_misses"]
    inflight = sums.get(f"{way}_inflight_hits")
    return found if inflight is None else found + present(inflight, inflight)


def _together(reads: Values, writes: Values) -> Values:
    """Both ways, or the one that is known."""
    return np.where(np.isnan(reads), writes, reads + present(writes, writes))


def _bypass_share(sums: Mapping[str, Values]) -> Values:
    """Share of I/Os past the cache, where all other ways of an I/O are known."""
    past: Values = np.zeros_like(sums["elapsed_s"])
    whole = past.copy()
    for way in ("read", "write"):
        bypassed = sums[f"{way}_bypasses"]
        hits = sums[f"{way}_hits"]
        others = present(hits, hits) + sums[f"{way}_misses"] + _inflight(sums, way)
        known = ~np.isnan(bypassed) & ~np.isnan(others)
        past += np.where(known, bypassed, 0.0)
        whole += np.where(known, bypassed + others, 0.0)
    return ratio(past, whole)


def _inflight(sums: Mapping[str, Values], way: str) -> Values | float:
    inflight = sums.get(f"{way}_inflight_hits")
    return 0.0 if inflight is None else present(inflight, inflight)


def _state(sums: Mapping[str, Values]) -> dict[str, Values]:
    as_they_are = ("dirty_bytes", "used_bytes", "size_bytes", "target_bytes", "writeback_bytes", "failed")
    size = sums["size_bytes"]
    return {
        **{name: sums[name] for name in as_they_are},
        "used_pct": _filled(sums["used_bytes"], size),
        "dirty_pct": _filled(sums["dirty_bytes"], size),
        "metadata_used_pct": _filled(sums["metadata_used_bytes"], sums["metadata_size_bytes"]),
        "recent_hit_pct": np.where(sums["recent_hit_percent"] <= 100.0, sums["recent_hit_percent"], np.nan),
    }


def _filled(used: Values, size: Values) -> Values:
    """Percent in use; a cache above its target, as the ARC may be for a while, is full."""
    return np.minimum(100.0 * ratio(used, size), 100.0)


def _readers(host: SampledHost) -> tuple[Collector, ...]:
    from collectors.tables.cache.dm_caches import MappedCaches  # noqa: PLC0415 (see collectors.subject.Readers)
    from collectors.tables.cache.page_caches import PageCaches  # noqa: PLC0415
    from collectors.tables.cache.reader import CacheCollector  # noqa: PLC0415

    mapped, pages = MappedCaches.of_host(host.sysfs), PageCaches(host.targets)
    return (CacheCollector(host.procfs, host.sysfs, host.disks, mapped=mapped, pages=pages),)


def _device_name(key: str, topology: Topology) -> str:
    device = topology.devices.get(subject_of_key(key))
    return safe_text(subject_of_key(key).partition(":")[0] if device is None else device.name)


def _label(key: str, name: str, topology: Topology) -> str:
    """Name of a row, with the operator's name of its device if it has one."""
    device = topology.devices.get(subject_of_key(key)) if kind_of(key) in DEVICE_KINDS else None
    if device is None or not device.friendly_name:
        return safe_text(name)
    return safe_text(f"{device.friendly_name} {name.partition(' ')[2]}")


def _labels(rows: Rows, topology: Topology) -> tuple[str, ...]:
    return tuple(_label(key, name, topology) for key, name in zip(rows.keys, rows.names, strict=True))


def _facts(key: str, topology: Topology) -> dict[str, object]:
    kind, what = kind_of(key), subject_of_key(key)
    if kind in DEVICE_KINDS:
        return {"kind": kind, "device": _device_name(key, topology)}
    named = {_FILE_KINDS[kind]: safe_text(what)} if kind in _FILE_KINDS else {}
    return {"kind": kind, **named}


def _identity(key: str, topology: Topology) -> str:
    kind, what = kind_of(key), subject_of_key(key)
    found = device_identity(what, topology) if kind in DEVICE_KINDS else safe_text(what)
    return f"{kind} {found}".rstrip()


_COLUMNS = ("hit_pct", "inflight_hit_pct", "miss_pct", "bypass_pct", "lookups_per_s", "hits_per_s", "blocked_per_s",
            "dirty_bytes", "used_bytes", "used_pct", "size_bytes")  # fmt: skip
"""A list of the ARC counts its hits per second and its size only."""

CACHES = Subject(
    table=TABLE,
    title="cache",
    one="cache",
    fields=FIELDS,
    raw=(CACHE,),
    readers=_readers,
    derive=cache_tables,
    report=Report(
        option="-c",
        help="Caches: ARC, bcache, dm-cache, dm-writecache: hits, misses, bypass, dirty, blocked, size.",
        columns=_COLUMNS,
        split_columns=(
            "read_hit_pct",
            "write_hit_pct",
            "hits_per_s",
            "misses_per_s",
            "bypasses_per_s",
            "promotions_per_s",
            "demotions_per_s",
            "blocked_per_s",
        ),
        distribution_columns=_COLUMNS,
        averages=lambda: AddedSums(TABLE, CACHE, cache_sums, cache_figures, latest=GAUGES),
    ),
    columns=tuple(field.id for field in FIELDS),
    active=any_above("used_bytes", "size_bytes", "hits_per_s", "misses_per_s", "bypasses_per_s", "blocked_per_s"),
    charts=(
        "hit_pct",
        "miss_pct",
        "bypass_pct",
        "lookups_per_s",
        "blocked_per_s",
        "dirty_bytes",
        "used_bytes",
        "read_hit_pct",
        "write_hit_pct",
    ),
    labels=_labels,
    facts=_facts,
    identity=_identity,
)
"""Rows overlap: the parts of the ARC are in the row of the ARC, and a pool's reads among the misses of the ARC."""
