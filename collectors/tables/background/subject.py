"""Background work: how far it is, how fast, and how much of the disks it takes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from collectors.derive.counter_deltas import Values, aligned, column_deltas, instant, ratio
from collectors.field import Combine, Field, Thresholds, Unit
from collectors.kernel.identity import SECTOR_BYTES
from collectors.model import FrameTable, Rows, Table, Topology
from collectors.sampling.reading import Collector
from collectors.subject import AddedSums, Interval, Report, SampledHost, Subject
from collectors.tables.background.schema import BACKGROUND, work_of
from collectors.tables.block.derive.layers import disks_below
from collectors.tables.block.schema import DISK
from engine.statistics.verdict import Better

_work = partial(Field, table="background", source="/proc/mdstat; status of dm maps", combine=Combine.NONE)

_FIELDS: tuple[Field, ...] = (
    _work(
        "done_pct",
        "done",
        "Part of the work that is done; of a store how full it is.",
        Unit.PERCENT,
        better=Better.NEITHER,
    ),
    _work(
        "bytes_per_s",
        "B/s",
        "Speed: bytes per second of each member, or that a store fills by.",
        Unit.BYTES_PER_SECOND,
        better=Better.NEITHER,
        sums="done_bytes",
    ),
    _work(
        "left_min",
        "left min",
        "Minutes until it is done, or the store full, at this speed.",
        Unit.COUNT,
        better=Better.LOWER,
    ),
    _work(
        "share_pct",
        "share",
        "Part of the bytes of the array's disks that is this work; where it has them for itself.",
        Unit.PERCENT,
        source="/proc/mdstat and /proc/diskstats",
        better=Better.LOWER,
        hot=Thresholds(50, 90),
    ),
    _work("waits", "waits", "1 while work on another array with the same disks comes first.", Unit.COUNT, counts=True),
    _work(
        "lasts_s",
        "lasts",
        "Seconds since it began; missing where that was before the first reading.",
        Unit.COUNT,
        better=Better.LOWER,
        digits=4,
    ),
    _work("members", "disks", "Members of the array.", Unit.COUNT, counts=True),
    _work(
        "missing_members",
        "missing",
        "Members that are missing: data is on fewer disks than it should be.",
        Unit.COUNT,
        counts=True,
        better=Better.LOWER,
        hot=Thresholds(1, 1),
    ),
)
_GAUGES = ("waits", "members", "missing_members")
_LATEST = ("done_now", "total_bytes", "share_pct", "lasts_ms", *_GAUGES)


def background_tables(interval: Interval, current: Table) -> dict[str, FrameTable]:
    """All fields over one interval."""
    sums = background_sums(interval.before(BACKGROUND.name), current, interval.elapsed_s)
    sums["share_pct"] = _share_pct(interval, current.rows, sums["done_bytes"], sums["members"])
    return {"background": FrameTable(current.rows, background_figures(sums))}


def background_sums(previous: Table | None, current: Table, elapsed_s: float) -> dict[str, Values]:
    """Add up an interval, one value per work, NaN where missing; only `done_bytes` are additive over intervals.

    Its length is the time between the two readings of the progress, where the recording has it.
    """
    columns = current.schema.columns
    deltas = column_deltas(columns, aligned(previous, current), current.values, elapsed_s=elapsed_s)
    own_s = deltas["sampled_ns"] / 1e9
    return {
        "done_bytes": deltas["done_bytes"],
        "elapsed_s": np.where(own_s > 0, own_s, elapsed_s),
        "done_now": instant(columns, current.values, "done_bytes"),
        "total_bytes": instant(columns, current.values, "total_bytes"),
        "share_pct": np.full(deltas.rows, np.nan),
        "lasts_ms": instant(columns, current.values, "lasts_ms"),
        **{name: instant(columns, current.values, name) for name in _GAUGES},
    }


def background_figures(sums: Mapping[str, Values]) -> dict[str, Values]:
    """All fields of the sums of an interval, or of several added up."""
    speed = ratio(sums["done_bytes"], sums["elapsed_s"])
    left_bytes = np.where(sums["done_now"] <= sums["total_bytes"], sums["total_bytes"] - sums["done_now"], np.nan)
    return {
        "done_pct": 100.0 - 100.0 * ratio(left_bytes, sums["total_bytes"]),
        "bytes_per_s": speed,
        "left_min": ratio(left_bytes, speed) / 60.0,
        "share_pct": sums["share_pct"],
        "lasts_s": sums["lasts_ms"] / 1e3,
        **{name: sums[name] for name in _GAUGES},
    }


def _share_pct(interval: Interval, rows: Rows, done_bytes: Values, members: Values) -> Values:
    """Compare what the members did for the work with all that they did, where it has them for itself."""
    found = np.full(len(rows), np.nan)
    disks = interval.now(DISK.name)
    if not len(rows) or disks is None or interval.previous is None:
        return found
    at = {name: row for row, name in enumerate(disks.rows.names)}
    below = disks_below(interval.current.topology)
    before = aligned(interval.before(DISK.name), disks)
    for row, key in enumerate(rows.keys):
        known = [at[name] for name in below.get(work_of(key)[0], ()) if name in at]
        if not members[row] > 0 or len(known) < members[row]:
            continue
        deltas = column_deltas(disks.schema.columns, before[known], disks.values[known], elapsed_s=interval.elapsed_s)
        moved_bytes = SECTOR_BYTES * float(np.sum(deltas["read_sectors"] + deltas["write_sectors"]))
        if moved_bytes > 0:
            found[row] = min(100.0, 100.0 * done_bytes[row] * members[row] / moved_bytes)
    return found


def _facts(key: str, topology: Topology) -> dict[str, object]:  # noqa: ARG001 - as all facts
    array, action = work_of(key)
    return {"array": array, "action": action}


def _readers(host: SampledHost) -> tuple[Collector, ...]:
    from collectors.kernel.mapped_targets import MappedTargets  # noqa: PLC0415 (see collectors.subject.Readers)
    from collectors.tables.background.freezes import FrozenFilesystems  # noqa: PLC0415
    from collectors.tables.background.mapped_works import KINDS  # noqa: PLC0415
    from collectors.tables.background.reader import BackgroundCollector  # noqa: PLC0415

    frozen = None if host.open_freezes is None else FrozenFilesystems(host.open_freezes)
    mapped = MappedTargets.of_host(host.sysfs, KINDS)
    return (BackgroundCollector(host.procfs, host.disks, mapped, frozen),)


_COLUMNS = ("done_pct", "bytes_per_s", "left_min", "share_pct", "lasts_s", "members", "missing_members")

WORKS = Subject(
    table="background",
    title="beneath",
    one="background work",
    many="background works",
    fields=_FIELDS,
    raw=(BACKGROUND,),
    readers=_readers,
    derive=background_tables,
    active=lambda table: np.ones(len(table.rows), np.bool_),
    columns=_COLUMNS,
    report=Report(
        option="-M",
        help="What runs beneath: check, resync, recovery of arrays, merges, freezes, how full thin pools are.",
        columns=_COLUMNS,
        split_columns=_COLUMNS,
        distribution_columns=_COLUMNS,
        averages=lambda: AddedSums("background", BACKGROUND, background_sums, background_figures, latest=_LATEST),
    ),
    facts=_facts,
)
