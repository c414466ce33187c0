"""Exact figures in place of those of lower tiers, for each row the block tracepoints cover."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values, ratio, share_pct
from collectors.derive.percentiles import percentiles_ns
from collectors.derive.quotients import Quotients
from collectors.model import FrameTable, Part, Rows, Tier, Topology
from collectors.tables.block.derive.traced import SUMMED, Traced
from collectors.tables.block.derive.traced_levels import LevelSums, TracedLevel, level_sums, levels
from collectors.tables.block.fields import BLOCK_FIELDS, DISK_FIELDS
from collectors.tables.block.schema import LOST_BUSY_SHARE

_NS_PER_MS = 1e6
_LEAST_BUSY = ("busy_pct", "busy_low_pct")
_BUSY = (*_LEAST_BUSY, "busy_high_pct")
"""Fields for the range of a port's busy time, which is empty where busy time is exact."""
_PEAKS = tuple(field.id for field in DISK_FIELDS if field.peak)
"""A lost I/O may have been slower than all others."""
_DISTRIBUTED = {
    part: (
        [field.id for field in fields if field.peak],
        {field.id: field.percent for field in fields if field.percent},
    )
    for part in (Part.SERVICE, Part.QUEUE)
    if (fields := [each for each in DISK_FIELDS if each.distribution is not None and each.distribution.part is part])
}
"""Largest values and percentiles by part of the time."""
_QUANTITIES = frozenset({*SUMMED, "whole_ios", "read_time_ms", "write_time_ms", "outstanding_io_s"})
_TIMED = Quotients(DISK_FIELDS, lambda field: Tier.EXACT in field.given_by, _QUANTITIES)
_UNCOUNTED = Quotients(DISK_FIELDS, lambda field: Tier.EXACT not in field.given_by, _QUANTITIES)
"""Figures that the kernel's counters give of all devices that they count."""


def with_exact(
    tables: Mapping[str, FrameTable],
    traced: Traced | None,
    disk_rows: Rows,
    topology: Topology,
    silent: NDArray[np.bool_],
    *,
    whole: NDArray[np.bool_] | None = None,
) -> dict[str, FrameTable]:
    """Put exact figures into the frame tables of disks, paths and ports, and mark them.

    Args:
        tables: tables derived from counters and samples.
        traced: counts of the tracepoints over the same interval; None changes nothing.
        disk_rows: rows of the raw disk table, which the device graph refers to.
        topology: devices and their graph.
        silent: rows of the disk table that have never counted anything.
        whole: rows of the disk table present for the whole interval; other rows are unchanged. None means all.
    """
    if traced is None:
        return dict(tables)
    found = levels(traced.rows, traced.group_rows, disk_rows, topology)
    return {
        name: _overlaid(name, table, traced, found[name], _Known(silent, whole))
        if _fits(table, found.get(name))
        else table
        for name, table in tables.items()
    }


class _Known(Struct, frozen=True, eq=False):
    """Rows of the disk table that never counted anything, and rows present for the whole interval."""

    silent: NDArray[np.bool_]
    whole: NDArray[np.bool_] | None


def _fits(table: FrameTable, level: TracedLevel | None) -> bool:
    return level is not None and table.rows is level.rows


def _overlaid(name: str, table: FrameTable, traced: Traced, level: TracedLevel, rows: _Known) -> FrameTable:
    sums = level_sums(traced, level)
    speaks = _speaks(table, sums, level, rows)
    columns, tiers = dict(table.columns), dict(table.tiers)
    _put_idle(columns, tiers, _idle(table, sums, level, rows))
    if len(sums.at):
        _put_exact(name, columns, tiers, sums, traced, speaks=speaks)
        if level.disk_at is not None:
            _put_uncounted(columns, sums, rows.silent[level.disk_at[sums.at]], traced.elapsed_s)
    return FrameTable(table.rows, columns, tiers)


def _put_exact(
    name: str,
    columns: dict[str, Values],
    tiers: dict[str, NDArray[np.uint8]],
    sums: LevelSums,
    traced: Traced,
    *,
    speaks: NDArray[np.bool_],
) -> None:
    """Put the exact figures of active rows in place; those that are known for all of them, as most are, at once."""
    ids = _ids(name)
    figures = exact_figures(sums, traced.elapsed_s, tag_wait=traced.tag_wait)
    found = {field_id: values for field_id, values in figures.items() if field_id in ids}
    known = ~np.isnan(np.array(list(found.values()))) & speaks
    are_open, have_lost = busy_bounds(sums, traced.elapsed_s).are_apart, sums.sums["lost_in_driver_ns"] > 0
    at_least = dict.fromkeys(_LEAST_BUSY, are_open) | dict.fromkeys(_PEAKS, have_lost)
    parts = zip(found.items(), known, known.all(axis=1).tolist(), known.any(axis=1).tolist(), strict=True)
    for (field_id, values), mask, is_whole, is_some in parts:
        if not is_some:
            continue
        codes: Tier | NDArray[np.int64] = Tier.EXACT
        if field_id in at_least:
            codes = np.where(at_least[field_id], Tier.AT_LEAST, Tier.EXACT)
        if is_whole:
            _put(columns, tiers, field_id, sums.at, values, codes=codes)
        else:
            some = codes if isinstance(codes, Tier) else codes[mask]
            _put(columns, tiers, field_id, sums.at[mask], values[mask], codes=some)


@functools.cache
def _ids(table: str) -> frozenset[str]:
    return frozenset(field.id for field in BLOCK_FIELDS[table])


def _speaks(table: FrameTable, sums: LevelSums, level: TracedLevel, rows: _Known) -> NDArray[np.bool_]:
    """Active rows with exact figures: not those with I/O in the kernel's counters only."""
    ios = sums.sums["reads"] + sums.sums["writes"] + sums.sums["others"]
    moved = (ios > 0) | np.isnan(ios)
    speaks = moved | ~(table.columns["iops"][sums.at] > 0)
    if level.disk_at is not None and rows.whole is not None:
        speaks &= rows.whole[level.disk_at[sums.at]]
    return speaks


def _idle(table: FrameTable, sums: LevelSums, level: TracedLevel, rows: _Known) -> NDArray[np.bool_]:
    """Rows without I/O in both the kernel's counters and the tracepoints, which saw none begin that still hang."""
    idle = ~(table.columns["iops"] > 0) & ~(table.columns["in_flight"] > 0)
    idle[sums.at] = False
    if level.disk_at is not None and rows.whole is not None:
        idle &= rows.whole[level.disk_at]
    return idle


def _put_idle(columns: dict[str, Values], tiers: dict[str, NDArray[np.uint8]], idle: NDArray[np.bool_]) -> None:
    for field_id in _BUSY:
        if field_id in columns:
            tiers[field_id] = np.where(idle, np.uint8(Tier.EXACT), _tiers_of(columns, tiers, field_id))
            columns[field_id] = np.where(idle, 0.0, columns[field_id])


def _put(
    columns: dict[str, Values],
    tiers: dict[str, NDArray[np.uint8]],
    field_id: str,
    at: NDArray[np.intp],
    values: Values,
    *,
    codes: Tier | NDArray[np.int64],
) -> None:
    """Put values of these tiers into some rows of a field, without modifying existing arrays."""
    tiers[field_id] = _tiers_of(columns, tiers, field_id).copy()
    columns[field_id] = columns[field_id].copy()
    tiers[field_id][at] = codes
    columns[field_id][at] = values


def _tiers_of(
    columns: Mapping[str, Values], tiers: Mapping[str, NDArray[np.uint8]], field_id: str
) -> NDArray[np.uint8]:
    codes = tiers.get(field_id)
    return np.where(np.isnan(columns[field_id]), np.uint8(Tier.NONE), np.uint8(Tier.KERNEL)) if codes is None else codes


def exact_figures(level: LevelSums, elapsed_s: float, *, tag_wait: bool) -> dict[str, Values]:
    """Figures of the rows of a level by field id; NaN where there was no I/O, or too few.

    Mean queue time is over the I/Os with a known queue time, NaN if there is none. Where I/Os were lost, busy time is
    the least that it can have been, and the peak of I/Os in the driver NaN: each can add one to it, however short.
    """
    sums = level.sums
    ios = sums["reads"] + sums["writes"]
    given = sums if tag_wait else {**sums, "tag_wait_ns": np.full(len(ios), np.nan)}
    queue_ms = _mean_ms(sums["queue_read_ns"] + sums["queue_write_ns"], np.maximum(ios - sums["unstamped"], 0.0))
    service_ms = _mean_ms(sums["service_read_ns"] + sums["service_write_ns"], ios)
    lost_ns, busy = sums["lost_in_driver_ns"], busy_bounds(level, elapsed_s)
    least_pct, most_pct = (share_pct(each_ns / 1e9, elapsed_s) for each_ns in (busy.least_ns, busy.most_ns))
    # Without a group for its devices a row is busy at least as the busiest of them, at most as all one after another.
    is_range = level.are_several & np.isnan(level.busy_ns)
    added_ns = np.minimum(sums["busy_ns"], 1e9 * elapsed_s)
    busiest_pct, added_pct = (share_pct(each_ns / 1e9, elapsed_s) for each_ns in (level.busiest_ns, added_ns))
    return {
        "queue_ms": queue_ms,
        "service_ms": service_ms,
        "await_ms": queue_ms + service_ms,
        **_TIMED.of(
            {**given, **_times(sums), "whole_ios": _whole_ios(sums), "elapsed_s": np.full(len(ios), elapsed_s)}
        ),
        "busy_pct": least_pct,
        "busy_low_pct": np.where(is_range, busiest_pct, least_pct),
        "busy_high_pct": np.where(is_range, added_pct, np.where(busy.are_apart, most_pct, least_pct)),
        "in_flight_peak": np.where((ios > 0) & ~(lost_ns > 0), _peak_in_driver(level), np.nan),
        **_distribution(level, ios),
    }


def _peak_in_driver(level: LevelSums) -> Values:
    """Most I/Os in the driver at once; NaN where several groups of CPUs issued, whose sum over time is not known."""
    peak, most = level.largest["in_driver_peak"], level.largest["in_driver_peak_most"]
    return np.where(most > peak, np.nan, peak)


class BusyBounds(Struct, frozen=True, eq=False):
    """Least and most time that rows can have been busy; they differ where I/Os were lost."""

    least_ns: Values
    most_ns: Values
    are_apart: NDArray[np.bool_]
    """Whether they differ by more than LOST_BUSY_SHARE."""


def busy_bounds(level: LevelSums, elapsed_s: float) -> BusyBounds:
    """Bound busy time: by the union of the I/Os that were seen, and that with all lost ones, within the interval.

    The time of a group of devices may have the lost time of its members in it, or not.
    """
    lost_ns, least_ns = level.sums["lost_in_driver_ns"], level.busy_ns
    most_ns = np.minimum(least_ns + lost_ns, np.maximum(1e9 * elapsed_s, least_ns))
    least_ns = np.where(level.are_several & (lost_ns > 0), np.maximum(least_ns - lost_ns, level.busiest_ns), least_ns)
    return BusyBounds(least_ns, most_ns, most_ns - least_ns > LOST_BUSY_SHARE * least_ns)


def _mean_ms(total_ns: Values, ios: Values) -> Values:
    return ratio(total_ns / _NS_PER_MS, ios)


def _whole_ios(sums: Mapping[str, Values]) -> Values:
    """I/Os before the kernel cut them; NaN of devices without requests, which have no queue time."""
    has_requests = sums["queue_read_ns"] + sums["queue_write_ns"] + sums["unstamped"] > 0
    whole = sums["reads"] + sums["writes"] - sums["splits"]
    return np.where(has_requests & (whole > 0), whole, np.nan)


def _times(sums: Mapping[str, Values]) -> dict[str, Values]:
    """Time of reads and of writes; NaN if some queue times are unknown, as their direction is not counted."""
    known = sums["unstamped"] == 0
    totals_ns = {kind: sums[f"queue_{kind}_ns"] + sums[f"service_{kind}_ns"] for kind in ("read", "write")}
    return {f"{kind}_time_ms": np.where(known, total / _NS_PER_MS, np.nan) for kind, total in totals_ns.items()}


def _distribution(level: LevelSums, ios: Values) -> dict[str, Values]:
    """Percentiles and maximum of service and queue time; the maximum is exact, and no percentile exceeds it.

    The maximum of the whole time is unknown if any queue time is, percentiles if a histogram had no room for a time.
    """
    unstamped = level.sums["unstamped"]
    # How many there were is not known where too many were lost.
    some = (ios > 0) | (np.isnan(ios) & (level.largest["service_max_ns"] > 0))
    known = {"service": some, "queue": some & ~(ios <= unstamped), "latency": some & (unstamped == 0)}
    largest_ns = {part: np.where(known[part], level.largest[f"{part}_max_ns"], np.nan) for part in known}
    figures = {"max_ms": largest_ns["latency"] / _NS_PER_MS}
    for part, (peaks, percentiles) in _DISTRIBUTED.items():
        figures |= dict.fromkeys(peaks, largest_ns[part] / _NS_PER_MS)
        found = _percentiles(level, part, tuple(percentiles.values()), largest_ns[part])
        figures |= zip(percentiles, found, strict=True)
    return figures


def _percentiles(level: LevelSums, part: str, percents: Sequence[float], largest_ns: Values) -> NDArray[np.float64]:
    if not level.cells:
        return np.full((len(percents), len(largest_ns)), np.nan)
    found = percentiles_ns(level.cells[part], len(largest_ns), percents)
    largest_ns = np.where(level.sums["uncounted"] > 0, np.nan, largest_ns)
    capped: NDArray[np.float64] = np.where(np.isnan(largest_ns), np.nan, np.minimum(found, largest_ns)) / _NS_PER_MS
    return capped


def _put_uncounted(columns: dict[str, Values], level: LevelSums, silent: NDArray[np.bool_], elapsed_s: float) -> None:
    """Fill in rates and outstanding I/Os of devices with I/O that the kernel does not count."""
    sums = level.sums
    ios = sums["reads"] + sums["writes"]
    blind = np.flatnonzero((silent | np.isnan(columns["iops"][level.at])) & (ios > 0))
    if not len(blind):
        return
    times = _times(sums)
    outstanding_io_s = (times["read_time_ms"] + times["write_time_ms"]) / 1e3
    given = {**sums, "outstanding_io_s": outstanding_io_s, "elapsed_s": np.full(len(ios), elapsed_s)}
    for field_id, values in _UNCOUNTED.of(given).items():
        columns[field_id] = columns[field_id].copy()
        columns[field_id][level.at[blind]] = values[blind]
