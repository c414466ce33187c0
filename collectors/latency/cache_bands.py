"""The hit band and the miss band of a cache in the latencies of the device that it lies over."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.derive.percentiles import bucket_midpoints_ns
from collectors.latency.heat_map import LatencyRange
from collectors.latency.subjects import LOAD, LatencySubject
from collectors.latency.summary import cells_of
from collectors.latency.ticks import LatencyTicks
from collectors.model import Frame
from collectors.tables.cache.schema import DEVICE_KINDS, kind_of, subject_of_key
from collectors.tables.cache.subject import CACHES

_AGREES = 0.1
"""How far the share of fast I/Os may be from the hit rate: counters and latencies end at slightly different times."""
_LEAST_SHARE = 0.05
"""Each band must hold this share of all I/Os."""
_LEAST_IOS = 200
_DEEP = 0.3
"""Times the lower of the two peaks: a valley between bands is no deeper than this by chance."""
_APART = 2.0
"""Times the median of hits: closer bands cannot be distinguished in a heat map."""
_PER_OCTAVE = 8
"""Bins per doubling of the latency, coarser than histogram buckets, which would be sparse."""
_SMOOTH = 3
"""Bins that are averaged, so that an empty one is no valley."""
_ENDS = (0.05, 0.95)
"""Part of a band that is marked."""


class CacheBands(Struct, frozen=True):
    """Latencies of hits and of misses, and the share of I/Os in the fast band."""

    hit: LatencyRange
    miss: LatencyRange
    fast_share: float


def cache_over(frame: Frame, subject: LatencySubject) -> str | None:
    """Key of the cache over the one device of a subject, or over the one target of a load; None if there is none."""
    table = frame.tables.get(CACHES.table)
    if table is None:
        return None
    keys = subject.keys
    if subject.source == LOAD:
        keys = _devices_of_load(frame, subject)
    found = [key for key in table.rows.keys if kind_of(key) in DEVICE_KINDS and subject_of_key(key) in keys]
    return found[0] if len(keys) == 1 and found else None


def _devices_of_load(frame: Frame, subject: LatencySubject) -> frozenset[str]:
    """Keys of the devices that targets of a load are, by their names; one that is a file has none."""
    load = frame.tables.get("load")
    if load is None:
        return frozenset()
    pairs = zip(load.rows.keys, load.rows.names, strict=True)
    names = {name.rpartition("/")[2] for key, name in pairs if not subject.keys or key in subject.keys}
    devices = frame.topology.devices.items()
    return frozenset(key for key, device in devices if names & {device.name, device.friendly_name} - {""})


def cache_bands(ticks: LatencyTicks, series: tuple[str, ...], hit_share: float) -> CacheBands | None:
    """Find two bands whose shares agree with a hit rate; None where the latencies do not say so.

    The split is the deepest valley of the histogram among the latencies that separate a share of about `hit_share`.
    """
    cells = cells_of(ticks, series)
    if not len(cells.bucket) or math.isnan(hit_share):
        return None
    bins = np.floor(np.log2(np.maximum(bucket_midpoints_ns(ticks.scale, cells.bucket), 1.0)) * _PER_OCTAVE)
    least = int(bins.min())
    counts = np.bincount(bins.astype(np.int64) - least, cells.count).astype(np.float64)
    latencies = 2.0 ** ((np.arange(len(counts)) + least + 0.5) / _PER_OCTAVE)
    return _split(counts, latencies, hit_share)


def _split(counts: NDArray[np.float64], latencies: NDArray[np.float64], hit_share: float) -> CacheBands | None:
    total = counts.sum()
    reached = np.cumsum(counts) / max(total, 1.0)
    smooth = np.convolve(counts, np.ones(_SMOOTH) / _SMOOTH, "same")
    inside = (reached >= _LEAST_SHARE) & (reached <= 1 - _LEAST_SHARE) & (np.abs(reached - hit_share) <= _AGREES)
    bins = np.flatnonzero(inside)
    if total < _LEAST_IOS or not len(bins):
        return None
    lowest = bins[smooth[bins] == smooth[bins].min()]
    split = int(lowest[len(lowest) // 2])
    peaks = smooth[: split + 1].max(), smooth[split + 1 :].max(initial=0.0)
    hit, miss = _band(counts[: split + 1], latencies[: split + 1]), _band(counts[split + 1 :], latencies[split + 1 :])
    if smooth[split] > _DEEP * min(peaks) or _middle(miss) < _APART * _middle(hit) or miss.low_ns <= hit.high_ns:
        return None
    return CacheBands(hit, miss, float(reached[split]))


def _band(counts: NDArray[np.float64], latencies: NDArray[np.float64]) -> LatencyRange:
    reached = np.cumsum(counts) / counts.sum()
    low, high = (float(latencies[int(np.searchsorted(reached, end))]) for end in _ENDS)
    return LatencyRange(low, high)


def _middle(band: LatencyRange) -> float:
    return math.sqrt(band.low_ns * band.high_ns)


def mean_hit_share(values: Mapping[str, NDArray[np.float64]], field_id: str) -> float:
    """Mean hit rate over a range of the history of a cache, as a share; NaN where none is known."""
    known = values.get(field_id, np.empty(0))
    known = known[~np.isnan(known)]
    return float(known.mean()) / 100 if len(known) else math.nan
