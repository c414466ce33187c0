"""Waterfall of the load over a time range: its mean latency beside those of its devices, and its wait for limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.latency.history import LatencyHistory
from collectors.latency.slow_ios import by_number
from collectors.latency.waterfall import MatchedIo, Waterfall, mean_waterfall
from collectors.model import Frame, Tier
from collectors.series import Series
from collectors.tables.cgroup.schema import parts_of
from engine.text import safe_text

_NS_PER_MS = 1e6
MOST_MATCHED = 20
AT_LIMIT_PCT = 90.0
"""A group that uses at least this share of a limit waits for it."""
_FEWER, _SHARED, _TOO_MANY = 0.95, 1.1, 1.5
"""I/Os of the devices per I/O of the load: below, a cache answers some; above, others use the devices, or I/Os are
split."""

SeriesOf = Callable[[str, str], Series | None]
"""Returns the history of a row by frame table and key."""
Stretch = tuple[int, int]
"""Times in nanoseconds: after the first, up to the second."""

_Row = dict[str, "np.ndarray[tuple[int], np.dtype[np.float64]]"]
_THROTTLE_FIELDS = ("iops", "limit_pct", "throttled_per_s", "throttle_wait_ms")


class LoadWaterfall(Struct, frozen=True):
    """Mean times, or why there are none; and the slowest I/Os matched with the kernel's."""

    mean: Waterfall | None
    caveat: str
    """Why there is no mean, or caveats about it; empty if there are none."""
    slowest: tuple[MatchedIo, ...]


def load_waterfall(
    past: LatencyHistory, series_of: SeriesOf, frame: Frame, start_ns: int, end_ns: int
) -> LoadWaterfall:
    """Compare the load with its devices over the intervals that ended in a time range."""
    matched = tuple(past.matched_ios(start_ns, end_ns, MOST_MATCHED))
    numbers = past.load_numbers(start_ns, end_ns)
    keys = _device_keys(numbers, frame)
    if not keys:
        return LoadWaterfall(None, "its device is not known here" if numbers else "no load in this time", matched)
    mean, caveat = _mean(series_of, frame, keys, (start_ns, end_ns))
    return LoadWaterfall(mean, caveat, matched)


def _mean(series_of: SeriesOf, frame: Frame, keys: Collection[str], stretch: Stretch) -> tuple[Waterfall | None, str]:
    load = series_of("load_total", "load")
    devices = [series for key in keys if (series := series_of("disks", key)) is not None]
    if load is None or not devices:
        return None, "no figures of its device"
    ios, latency_ms = _weighted([load], "await_ms", stretch)
    device_ios, service_ms = _weighted(devices, "service_ms", stretch)
    _, queue_ms = _weighted(devices, "queue_ms", stretch)
    _, tag_ms = _weighted(devices, "tag_wait_ms", stretch)
    if math.isnan(service_ms) or math.isnan(queue_ms) or not ios > 0:
        return None, "queue and service time of its device are not known: they need the exact or the sampled tier"
    ratio = device_ios / ios
    if ratio < _FEWER:
        return None, f"its device did only {100 * ratio:.0f} % of its I/Os: memory answers, or I/Os are merged"
    if ratio > _TOO_MANY:
        return None, f"its device did {ratio:.1f} times its I/Os: others use it too, or I/Os are split"
    throttle = load_throttle(series_of, frame, keys, stretch, ios)
    held_ms = math.nan if throttle is None else throttle.wait_ms
    to_ns = [value * _NS_PER_MS for value in (latency_ms, tag_ms, queue_ms, service_ms, held_ms)]
    waterfall = mean_waterfall(*to_ns)
    if waterfall is None:
        return None, "its device's times exceed its own: they are not of the same I/Os"
    return waterfall, "; ".join((*_caveats(frame, keys, ratio), *_limit_caveats(throttle)))


def _caveats(frame: Frame, keys: Iterable[str], ratio: float) -> Iterator[str]:
    if ratio > _SHARED:
        yield f"others use the device too: {100 * (1 - 1 / ratio):.0f} % of its I/Os"
    disks = frame.tables.get("disks")
    tiers = None if disks is None else disks.tiers.get("service_ms")
    rows = [] if disks is None else [row for key in keys if (row := disks.rows.positions.get(key)) is not None]
    if tiers is not None and any(tiers[row] != Tier.EXACT for row in rows):
        yield "~ Q and S are sampled estimates"


def _limit_caveats(throttle: LoadThrottle | None) -> Iterator[str]:
    """Without the wait itself, what the clock of the load has beside the block layer contains it."""
    if throttle is not None and math.isnan(throttle.wait_ms) and throttle.limit_pct >= AT_LIMIT_PCT:
        group = safe_text(throttle.path)
        yield f"~ outside contains the wait for limits: {group} uses {throttle.limit_pct:.0f} % of one"


def _device_keys(numbers: Iterable[tuple[int, int]], frame: Frame) -> tuple[str, ...]:
    """Keys of whole devices by number, for a partition that of its disk; empty if one is unknown."""
    devices = by_number(frame.topology.devices)
    layers = {layer.key: layer for layer in frame.topology.graph.layers if layer.kind == "partition"}
    found = []
    for major, minor in numbers:
        device = devices.get((major, minor))
        parts = [layer for key, layer in layers.items() if f":{major}:{minor}#" in key and layer.below]
        if device is None and not parts:
            return ()
        found.append(parts[0].below[0] if device is None else device.key)
    return tuple(dict.fromkeys(found))


def _weighted(many: Iterable[Series], field_id: str, stretch: Stretch) -> tuple[float, float]:
    """Sum of the I/Os, and the mean of a figure per I/O over some rows; NaN if it is never known."""
    weights, values = [], []
    for series in many:
        kept = _within(series, stretch)
        weights.append(np.nan_to_num(series.values["iops"][kept]))
        values.append(series.values.get(field_id, np.full(len(series), np.nan))[kept])
    weight, value = np.concatenate(weights), np.concatenate(values)
    known = np.isfinite(value) & (weight > 0)
    mean = float(np.average(value[known], weights=weight[known])) if known.any() else math.nan
    return float(weight.sum()), mean


class LoadThrottle(Struct, frozen=True):
    """The control group of the load."""

    path: str
    wait_ms: float
    """Mean wait per I/O, held or not; NaN if it is not timed."""
    limit_pct: float
    """Share used of the nearest limit of the group or of those above it; NaN without any."""


def load_throttle(
    series_of: SeriesOf, frame: Frame, devices: Collection[str], stretch: Stretch, load_ios: float
) -> LoadThrottle | None:
    """Find the group by its I/Os: the deepest that did as many on the devices; None unless there is exactly one.

    Args:
        series_of: history of a row by frame table and key.
        frame: the frame whose groups are examined.
        devices: keys of the devices of the load.
        stretch: time range.
        load_ios: I/Os of the load in it, summed as rates are.
    """
    groups = _groups(series_of, frame, devices, stretch)
    fitting = {path: rows for path, rows in groups.items() if _FEWER <= _ios(rows) / load_ios <= _SHARED}
    if not fitting:
        return None
    deepest = max(fitting, key=_depth)
    if not all(_is_above(path, deepest) for path in fitting):
        return None
    above = [rows for path, rows in groups.items() if _is_above(path, deepest)]
    limit_pct = [_mean_known(row["limit_pct"]) for rows in above for row in rows]
    known = [share for share in limit_pct if not math.isnan(share)]
    return LoadThrottle(deepest, _wait_ms(fitting[deepest]), max(known, default=math.nan))


def _groups(series_of: SeriesOf, frame: Frame, devices: Collection[str], stretch: Stretch) -> dict[str, list[_Row]]:
    table, found = frame.tables.get("cgroups"), dict[str, list[_Row]]()
    for key in () if table is None else table.rows.keys:
        disk, path = parts_of(key)
        series = series_of("cgroups", key) if disk in devices else None
        if series is not None:
            found.setdefault(path, []).append(_row(series, stretch))
    return found


def _row(series: Series, stretch: Stretch) -> _Row:
    kept, unknown = _within(series, stretch), np.full(len(series), np.nan)
    return {name: series.values.get(name, unknown)[kept] for name in _THROTTLE_FIELDS}


def _ios(rows: Iterable[_Row]) -> float:
    return float(sum(np.nan_to_num(row["iops"]).sum() for row in rows))


def _wait_ms(rows: Iterable[_Row]) -> float:
    ios = wait_ms = 0.0
    for row in rows:
        known = np.isfinite(row["throttled_per_s"]) & np.isfinite(row["iops"])
        ios += row["iops"][known].sum()
        wait_ms += (row["throttled_per_s"] * np.nan_to_num(row["throttle_wait_ms"]))[known].sum()
    return wait_ms / ios if ios > 0 else math.nan


def _mean_known(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan


def _depth(path: str) -> int:
    return 0 if path == "/" else path.count("/")


def _is_above(path: str, other: str) -> bool:
    """Whether a group is another one or above it."""
    return path in ("/", other) or other.startswith(f"{path}/")


def _within(series: Series, stretch: Stretch) -> NDArray[np.bool_]:
    """Return which intervals of a series ended in a time range."""
    return (series.times_ns > stretch[0]) & (series.times_ns <= stretch[1])
