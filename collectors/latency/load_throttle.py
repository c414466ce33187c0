"""How long limits of control groups held the I/Os of the load, by the figures of the group that did them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

import numpy as np
from msgspec import Struct

from collectors.latency.load_parts import FEWER, SHARED, SeriesOf, Stretch, within
from collectors.model import Frame
from collectors.series import Series
from collectors.tables.cgroup.schema import parts_of

AT_LIMIT_PCT = 90.0
"""A group that uses at least this share of a limit waits for it."""


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
    fitting = {path: rows for path, rows in groups.items() if FEWER <= _ios(rows) / load_ios <= SHARED}
    if not fitting:
        return None
    deepest = max(fitting, key=_depth)
    if not all(_is_above(path, deepest) for path in fitting):
        return None
    above = [rows for path, rows in groups.items() if _is_above(path, deepest)]
    limit_pct = [_mean(row["limit_pct"]) for rows in above for row in rows]
    known = [share for share in limit_pct if not math.isnan(share)]
    return LoadThrottle(deepest, _wait_ms(fitting[deepest]), max(known, default=math.nan))


_Row = dict[str, "np.ndarray[tuple[int], np.dtype[np.float64]]"]
_FIELDS = ("iops", "limit_pct", "throttled_per_s", "throttle_wait_ms")


def _groups(series_of: SeriesOf, frame: Frame, devices: Collection[str], stretch: Stretch) -> dict[str, list[_Row]]:
    table, found = frame.tables.get("cgroups"), dict[str, list[_Row]]()
    for key in () if table is None else table.rows.keys:
        disk, path = parts_of(key)
        series = series_of("cgroups", key) if disk in devices else None
        if series is not None:
            found.setdefault(path, []).append(_row(series, stretch))
    return found


def _row(series: Series, stretch: Stretch) -> _Row:
    kept, unknown = within(series, stretch), np.full(len(series), np.nan)
    return {name: series.values.get(name, unknown)[kept] for name in _FIELDS}


def _ios(rows: Iterable[_Row]) -> float:
    return float(sum(np.nan_to_num(row["iops"]).sum() for row in rows))


def _wait_ms(rows: Iterable[_Row]) -> float:
    ios = wait_ms = 0.0
    for row in rows:
        known = np.isfinite(row["throttled_per_s"]) & np.isfinite(row["iops"])
        ios += row["iops"][known].sum()
        wait_ms += (row["throttled_per_s"] * np.nan_to_num(row["throttle_wait_ms"]))[known].sum()
    return wait_ms / ios if ios > 0 else math.nan


def _mean(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan


def _depth(path: str) -> int:
    return 0 if path == "/" else path.count("/")


def _is_above(path: str, other: str) -> bool:
    """Whether a group is another one or above it."""
    return path in ("/", other) or other.startswith(f"{path}/")
