"""Sums of an interval into the disk fields of the registry, each with the tier it was obtained by."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from collectors.derive.disk_interval import DiskInterval
from collectors.derive.growth import Values, ratio
from collectors.derive.queue_split import busy_by_looks, queue_split
from collectors.fields import fields_of
from collectors.heat import heat
from collectors.model import FrameTable, HostFacts, Rows, Tier, Topology

Mask = NDArray[np.bool_]

MIN_TIME_MS = 2.0
MIN_TIME_BIO_MS = 20.0
"""Summed latency that an interval needs before its mean says anything.

The times are cut to milliseconds when they are read: one I/O of 50 us may show as a whole millisecond. Those of
bio-based devices count in ticks of 1 to 10 ms.
"""

_ZERO_WHEN_IDLE = frozenset({"heat", "iops", "in_flight", "busy_pct"})
"""Besides the rates, what is known to be 0 when nothing moved; all else is a mean over I/Os that were not."""


def disk_table(interval: DiskInterval, topology: Topology) -> FrameTable:
    """All disk fields over one interval.

    Disks whose accounting is off (`queue/iostats`) are NaN throughout: their counters stand still under load too.
    """
    devices = topology.devices.values()
    blind = _mask(interval.rows, {device.key for device in devices if device.iostats is False})
    bio_based = _mask(interval.rows, {device.key for device in devices if device.bio_based})[interval.at]
    sums = interval.sums
    split = queue_split(sums, bio_based | (not splits_at_driver(topology.host)))
    looked_busy = busy_by_looks(sums)
    busy = 100.0 * np.where(np.isnan(looked_busy), ratio(sums["busy_s"], sums["elapsed_s"]), looked_busy)
    busy[blind[interval.at]] = np.nan
    columns = _rates(sums) | _means(sums, bio_based) | split
    columns["busy_pct"] = busy
    columns["in_flight"] = ratio(sums["outstanding_io_s"], sums["elapsed_s"])
    columns["in_flight_peak"] = interval.peaks
    columns["heat"] = heat(busy, columns["in_flight"], split["queue_ms"], split["service_ms"])
    tiers = {field_id: _tiers(columns[field_id]) for field_id in ("queue_ms", "service_ms", "in_flight_peak")}
    tiers["busy_pct"] = np.where(np.isnan(looked_busy), _tiers(busy, Tier.KERNEL), _tiers(busy))
    return _spread(interval, columns, tiers, blind)


def splits_at_driver(host: HostFacts) -> bool:
    """Whether sysfs `inflight` counts requests in the driver only.

    True from 5.0, where every request queue is blk-mq; before, it may count queued ones too. A host that does not tell
    its kernel is taken for a current one.
    """
    major = host.kernel.partition(".")[0]
    return not (major.isascii() and major.isdecimal()) or int(major[:6]) >= 5


def _mask(rows: Rows, keys: set[str]) -> Mask:
    if not keys:
        return np.zeros(len(rows), np.bool_)
    return np.fromiter((key in keys for key in rows.keys), np.bool_, len(rows))


def _tiers(values: Values, tier: Tier = Tier.SAMPLED) -> NDArray[np.uint8]:
    return np.where(np.isnan(values), np.uint8(Tier.NONE), np.uint8(tier))


def _rates(sums: Mapping[str, Values]) -> dict[str, Values]:
    amounts = {
        "iops": sums["reads"] + sums["writes"],
        "reads_per_s": sums["reads"],
        "writes_per_s": sums["writes"],
        "bytes_per_s": sums["read_bytes"] + sums["write_bytes"],
        "read_bytes_per_s": sums["read_bytes"],
        "write_bytes_per_s": sums["write_bytes"],
        "discards_per_s": sums["discards"],
        "flushes_per_s": sums["flushes"],
        "read_merges_per_s": sums["read_merges"],
        "write_merges_per_s": sums["write_merges"],
    }
    return {field_id: ratio(amount, sums["elapsed_s"]) for field_id, amount in amounts.items()}


def _means(sums: Mapping[str, Values], bio_based: Mask) -> dict[str, Values]:
    """Divide by I/Os: what one took or moved on average; NaN when there was none."""
    needed_ms = np.where(bio_based, MIN_TIME_BIO_MS, MIN_TIME_MS)
    read_ms, write_ms = sums["read_ms"], sums["write_ms"]
    return {
        "await_ms": _mean_ms(read_ms + write_ms, sums["reads"] + sums["writes"], needed_ms),
        "read_await_ms": _mean_ms(read_ms, sums["reads"], needed_ms),
        "write_await_ms": _mean_ms(write_ms, sums["writes"], needed_ms),
        "read_bytes_per_io": ratio(sums["read_bytes"], sums["reads"]),
        "write_bytes_per_io": ratio(sums["write_bytes"], sums["writes"]),
    }


def _mean_ms(time_ms: Values, ios: Values, needed_ms: Values) -> Values:
    return ratio(np.where(time_ms >= needed_ms, time_ms, np.nan), ios)


def _spread(
    interval: DiskInterval, columns: Mapping[str, Values], tiers: Mapping[str, NDArray[np.uint8]], blind: Mask
) -> FrameTable:
    """Figures of the disks that moved into columns over all disks; fields that need probes stay NaN."""
    rows = len(interval.rows)
    spread: dict[str, Values] = {}
    for field in fields_of("disks"):
        idle = 0.0 if field.id in _ZERO_WHEN_IDLE or field.id.endswith("_per_s") else np.nan
        column = np.full(rows, idle)
        column[interval.at] = columns.get(field.id, np.nan)
        column[blind] = np.nan
        spread[field.id] = column
    marks: dict[str, NDArray[np.uint8]] = {}
    for field_id, codes in tiers.items():
        marks[field_id] = np.full(rows, Tier.KERNEL if field_id in _ZERO_WHEN_IDLE else Tier.NONE, np.uint8)
        marks[field_id][interval.at] = codes
        marks[field_id][blind] = Tier.NONE
    return FrameTable(interval.rows, spread, marks)
