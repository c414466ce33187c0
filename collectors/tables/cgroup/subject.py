"""Control groups: additive sums of each device over an interval, and their figures."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values, aligned, column_deltas, present, ratio, share_pct
from collectors.derive.percentiles import cells_of, percentiles_ns
from collectors.derive.quotients import Quotients
from collectors.field import Field, Thresholds, Unit
from collectors.model import Column, FrameTable, Histograms, Rows, Table, Topology
from collectors.sampling.reading import Collector
from collectors.subject import AddedSums, Interval, Report, SampledHost, Subject, any_above, device_identity
from collectors.tables.cgroup.schema import CGROUP, COSTS, COUNTS, LIMITS, THROTTLED, VRATE, parts_of, short_name
from engine.statistics.verdict import Better
from engine.text import safe_text

LABEL_WIDTH = 32
WAITING_PCT = 1.0
"""Pressure below this share is normal, from occasional metadata I/O."""
_LATEST = (VRATE, *LIMITS)
_SOMETIMES = "Where the kernel has io.cost enabled"


_LIMIT = "io.max of the group; cgroup v1: blkio.throttle.*"
_COST = "cost.* in io.stat of the group (cgroup v2)"
_HELD = "functions __blk_throtl_bio and submit_bio_noacct_nocheck of the kernel (BPF)"

_cgroup = partial(Field, table="cgroups", source="io.stat of the group; cgroup v1: blkio.throttle.io_service*")
_per_s = partial(_cgroup, unit=Unit.PER_SECOND)
_bytes_per_s = partial(_cgroup, unit=Unit.BYTES_PER_SECOND)
_limit = partial(_per_s, source=_LIMIT, better=Better.NEITHER)
_limit_bytes = partial(_bytes_per_s, source=_LIMIT, better=Better.NEITHER)
_cost = partial(_cgroup, unit=Unit.PERCENT, source=_COST, factor=1e-4)
_stall = partial(
    _cgroup, unit=Unit.PERCENT, source="io.pressure of the group (cgroup v2)", factor=100.0, better=Better.LOWER
)

_FIELDS: tuple[Field, ...] = (
    _per_s("iops", "IOPS", "Reads and writes per second, those of descendants too.", sums="reads writes"),
    _bytes_per_s("bytes_per_s", "B/s", "Bytes read and written per second.", sums="read_bytes write_bytes"),
    _cgroup(
        "limit_pct",
        "%limit",
        "The limit that is nearest: what was used of it, at most 100 %. Limits of ancestors are in their rows.",
        Unit.PERCENT,
        hot=Thresholds(80, 95),
        source=_LIMIT,
    ),
    _stall(
        "psi_some_pct",
        "psi some",
        "Time in which some task of the group waited for I/O, whatever the device (cgroup v2).",
        hot=Thresholds(20, 50),
        sums="psi_some_s",
    ),
    _stall(
        "psi_full_pct",
        "psi full",
        "Time in which all tasks of the group that had work waited for I/O (cgroup v2).",
        hot=Thresholds(10, 30),
        sums="psi_full_s",
    ),
    _per_s("reads_per_s", "r/s", "Reads per second.", sums="reads"),
    _per_s("writes_per_s", "w/s", "Writes per second.", sums="writes"),
    _bytes_per_s("read_bytes_per_s", "rB/s", "Bytes read per second.", sums="read_bytes"),
    _bytes_per_s("write_bytes_per_s", "wB/s", "Bytes written per second.", sums="write_bytes"),
    _cgroup("read_bytes_per_io", "r size", "Mean size of a read.", Unit.BYTES, sums="read_bytes", per="reads_per_s"),
    _cgroup(
        "write_bytes_per_io", "w size", "Mean size of a write.", Unit.BYTES, sums="write_bytes", per="writes_per_s"
    ),
    _per_s("discards_per_s", "d/s", "Discards per second.", better=Better.NEITHER, sums="discards"),
    _bytes_per_s(
        "discard_bytes_per_s", "dB/s", "Bytes discarded per second.", better=Better.NEITHER, sums="discard_bytes"
    ),
    _limit_bytes("read_limit_bytes_per_s", "r lim", "Bytes it may read per second (io.max rbps)."),
    _limit_bytes("write_limit_bytes_per_s", "w lim", "Bytes it may write per second (io.max wbps)."),
    _limit("read_limit_per_s", "r/s lim", "Reads it may do per second (io.max riops)."),
    _limit("write_limit_per_s", "w/s lim", "Writes it may do per second (io.max wiops)."),
    _cost(
        "cost_usage",
        "c use",
        f"Device time it used by the cost model. {_SOMETIMES}. Those of descendants add up.",
        sums="cost_usage_us",
    ),
    _cost(
        "cost_wait",
        "c wait",
        f"Time it waited for its share of the device. {_SOMETIMES}, with the parameter blkcg_debug_stats.",
        sums="cost_wait_us",
    ),
    _cost("cost_indebt", "c debt", "Time it was in debt for I/O that could not wait, likewise.", sums="cost_indebt_us"),
    _cost(
        "cost_indelay", "c delay", "Time its tasks were slowed down for such a debt, likewise.", sums="cost_indelay_us"
    ),
    _cgroup(
        "cost_vrate",
        "vrate",
        f"Speed of the device's cost clock, of the root. {_SOMETIMES}.",
        Unit.PERCENT,
        source=_COST,
    ),
    _per_s(
        "throttled_per_s",
        "held/s",
        "I/Os per second that its limits, and those of groups above, held (exact time, while a group has a limit).",
        better=Better.LOWER,
        source=_HELD,
        sums="throttle_ios",
    ),
    _cgroup(
        "throttle_wait_ms",
        "t wait",
        "Mean wait of those for the limit, before the block layer counts them: in no other latency.",
        Unit.MILLISECONDS,
        source=_HELD,
        sums="throttle_wait_ns",
        per="throttled_per_s",
        factor=1e-6,
    ),
    _cgroup(
        "throttle_p99_ms",
        "t p99",
        "99th percentile of that, within 7 %; from 100 I/Os on.",
        Unit.MILLISECONDS,
        source=_HELD,
        percent=99.0,
    ),
)
_QUOTIENTS = Quotients(_FIELDS)


def cgroup_tables(interval: Interval, current: Table) -> dict[str, FrameTable]:
    """All fields of control groups over one interval."""
    sums = cgroup_sums(interval.before(CGROUP.name), current, interval.elapsed_s)
    percentiles = throttle_percentiles(current.rows, interval.histograms(CGROUP.name))
    return {"cgroups": FrameTable(current.rows, cgroup_figures(sums) | percentiles)}


def cgroup_sums(previous: Table | None, current: Table, elapsed_s: float) -> dict[str, Values]:
    """Add up an interval, one value per row, NaN where missing; all but limits and the clock rate are additive.

    Pressure and cost are reset independently, as when io.cost is enabled.
    """
    columns = current.schema.columns
    before = aligned(previous, current)
    deltas = column_deltas(columns, before, current.values, elapsed_s=elapsed_s, source_of=_source)
    elapsed = np.full(deltas.rows, elapsed_s)
    shares = {f"{name}_s": share_pct(deltas[f"{name}_us"] / 1e6, elapsed_s) * elapsed / 100.0 for name in _STALLS}
    return {
        **{name: deltas[name] for name in (*COUNTS, *COSTS, *THROTTLED, *_LATEST)},
        **shares,
        "elapsed_s": elapsed,
    }


_STALLS = ("psi_some", "psi_full")


def _source(column: Column) -> str:
    family = column.id.partition("_")[0]
    return family if family in {"psi", "cost", "throttle"} else "io"


def cgroup_figures(sums: Mapping[str, Values]) -> dict[str, Values]:
    """All fields of the sums of an interval, or of several added up, but the percentile."""
    quotients = _QUOTIENTS.of(sums)
    limits = {
        "read_limit_bytes_per_s": sums["read_limit_bytes"],
        "write_limit_bytes_per_s": sums["write_limit_bytes"],
        "read_limit_per_s": sums["read_limit_ios"],
        "write_limit_per_s": sums["write_limit_ios"],
    }
    return quotients | limits | {"limit_pct": _limit_pct(quotients, limits), "cost_vrate": sums[VRATE] / 100.0}


def throttle_percentiles(rows: Rows, histograms: Histograms | None) -> dict[str, Values]:
    """Return the 99th percentile of the wait for limits; NaN with fewer than 100 I/Os."""
    if histograms is None:
        return {"throttle_p99_ms": np.full(len(rows), np.nan)}
    return {"throttle_p99_ms": percentiles_ns(cells_of(rows, histograms), len(rows), (99.0,))[0] / 1e6}


def _limit_pct(rates: Mapping[str, Values], limits: Mapping[str, Values]) -> Values:
    """Largest share of any limit; the kernel counts discards as writes (blk_throtl_bio)."""
    discards = rates["discards_per_s"]
    used = {
        "read_limit_bytes_per_s": rates["read_bytes_per_s"],
        "write_limit_bytes_per_s": rates["write_bytes_per_s"],
        "read_limit_per_s": rates["reads_per_s"],
        "write_limit_per_s": rates["writes_per_s"] + present(discards, discards),
    }
    largest: Values = np.fmax.reduce([ratio(used[name], limit) for name, limit in limits.items()])
    return np.minimum(100.0, 100.0 * largest)


def _readers(host: SampledHost) -> tuple[Collector, ...]:
    from collectors.tables.cgroup.reader import CgroupCollector  # noqa: PLC0415 (see collectors.subject.Readers)
    from collectors.tables.cgroup.throttle import ThrottleWaits  # noqa: PLC0415
    from collectors.tables.cgroup.tree import find_hierarchy  # noqa: PLC0415

    hierarchy = find_hierarchy(host.sysfs)
    if hierarchy is None:
        return ()
    if host.open_throttle is None:
        return (CgroupCollector(hierarchy, host.disks),)
    waits = ThrottleWaits(host.open_throttle, adds_up=hierarchy.adds_up)
    return (CgroupCollector(hierarchy, host.disks, waits),)


_did_io = any_above("iops", "discards_per_s")


def _active(table: FrameTable) -> NDArray[np.bool_]:
    """Rows with I/O, and all rows of groups without I/O with waiting tasks: one of these devices blocks them."""
    active, group = _did_io(table), _groups_of(table.rows)
    idle = np.bincount(group, weights=active) == 0
    shown: NDArray[np.bool_] = active | (idle[group] & (table.columns["psi_some_pct"] >= WAITING_PCT))
    return shown


@functools.lru_cache(maxsize=2)
def _groups_of(rows: Rows) -> NDArray[np.intp]:
    """Return the number of the group of each row."""
    return np.unique([parts_of(key)[1] for key in rows.keys], return_inverse=True)[1].astype(np.intp)


def _labels(rows: Rows, topology: Topology) -> tuple[str, ...]:  # noqa: ARG001 - as all labels
    return tuple(short_name(safe_text(name), LABEL_WIDTH) for name in rows.names)


def _facts(key: str, topology: Topology) -> dict[str, object]:
    disk, path = parts_of(key)
    device = topology.devices.get(disk)
    name = disk.partition(":")[0] if device is None else device.name
    return {"cgroup": safe_text(path), "device": safe_text(name)}


def _identity(key: str, topology: Topology) -> str:
    disk, path = parts_of(key)
    return f"{safe_text(path)} {device_identity(disk, topology)}"


CGROUPS = Subject(
    table="cgroups",
    title="cgroup",
    one="control group",
    fields=_FIELDS,
    raw=(CGROUP,),
    readers=_readers,
    derive=cgroup_tables,
    report=Report(
        option="-C",
        help="Control groups: what each did on each device, of its limits, and how long it waited.",
        columns=(
            *("iops", "bytes_per_s", "limit_pct", "psi_some_pct", "psi_full_pct"),
            *("throttled_per_s", "throttle_wait_ms", "throttle_p99_ms"),
        ),
        split_columns=(
            "reads_per_s",
            "writes_per_s",
            "read_bytes_per_s",
            "write_bytes_per_s",
            "limit_pct",
            "psi_some_pct",
            "psi_full_pct",
            "throttled_per_s",
            "throttle_wait_ms",
        ),
        distribution_columns=("iops", "bytes_per_s", "limit_pct", "psi_some_pct", "psi_full_pct"),
        unasked=False,
        averages=lambda: AddedSums(
            "cgroups", CGROUP, cgroup_sums, cgroup_figures, latest=_LATEST, percentiles=throttle_percentiles
        ),
    ),
    columns=tuple(field.id for field in _FIELDS),
    active=_active,
    charts=(
        *("iops", "bytes_per_s", "limit_pct", "psi_some_pct", "psi_full_pct"),
        *("throttled_per_s", "throttle_wait_ms"),
    ),
    labels=_labels,
    facts=_facts,
    identity=_identity,
)
"""A group's row includes the I/O of its descendants: rows of different depth must not be added up."""
