"""Hosts of a fleet, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

import numpy as np

from collectors.derive.counter_deltas import Values, aligned, column_deltas, ratio
from collectors.derive.percentiles import RowCells, percentiles_ns, rows_of_cells
from collectors.field import Field, Shown, Thresholds, Unit, with_sources
from collectors.model import FrameTable, Rows, Table, Topology
from collectors.subject import AddedSums, Interval, Report, Subject, any_above
from collectors.tables.fleet.schema import FLEET, SERVICE
from engine.statistics.verdict import Better
from engine.text import safe_text

TOTAL_ROWS = Rows(("fleet",), ("all hosts",))
_PERCENTILES = {"p50_ms": 50.0, "p99_ms": 99.0, "p999_ms": 99.9}
_ADDED = (
    "reads",
    "writes",
    "read_bytes",
    "write_bytes",
    "read_ms",
    "write_ms",
    "in_flight_now",
    "load_ios",
    "load_bytes",
    "load_latency_ns",
    "disks",
)
_LATEST = ("in_flight_now", "disks", "late_ns", "clock_bound_ns", "round_trip_ns", "clock_error_ms")
_NS_PER_MS = 1e6


def _both(id_: str, title: str, unit: Unit, help_: str, **shown: Unpack[Shown]) -> tuple[Field, Field]:
    return (
        Field(id_, "fleet", title, unit, help_, **shown),
        Field(id_, "fleet_total", title, unit, f"{help_} All hosts together.", **shown),
    )


def _host(id_: str, title: str, unit: Unit, help_: str, **shown: Unpack[Shown]) -> Field:
    return Field(id_, "fleet", title, unit, help_, **shown)


_FIELDS: tuple[Field, ...] = (
    *_both("iops", "IOPS", Unit.PER_SECOND, "Reads and writes of disks per second, those not built on others."),
    *_both("bytes_per_s", "B/s", Unit.BYTES_PER_SECOND, "Bytes read and written per second."),
    *_both(
        "await_ms", "await", Unit.MILLISECONDS, "Mean time of an I/O, in the queue and served.", better=Better.LOWER
    ),
    *_both("in_flight", "aqu-sz", Unit.COUNT, "I/Os outstanding on average: IOPS times their mean time."),
    *_both("p50_ms", "p50", Unit.MILLISECONDS, "Service time that half of the I/Os stayed within. Exact only."),
    *_both("p99_ms", "p99", Unit.MILLISECONDS, "Service time that 99 % of the I/Os stayed within. Exact only."),
    *_both(
        "p999_ms",
        "p99.9",
        Unit.MILLISECONDS,
        "Service time that 99.9 % of the I/Os stayed within, with 1,000 I/Os in the interval. Exact only.",
    ),
    *_both("load_iops", "load IOPS", Unit.PER_SECOND, "I/Os per second of lunscope's own load."),
    *_both("load_bytes_per_s", "load B/s", Unit.BYTES_PER_SECOND, "Bytes per second of lunscope's own load."),
    *_both("load_await_ms", "load lat", Unit.MILLISECONDS, "Mean latency of that load.", better=Better.LOWER),
    *_both("reads_per_s", "r/s", Unit.PER_SECOND, "Reads per second."),
    *_both("writes_per_s", "w/s", Unit.PER_SECOND, "Writes per second."),
    *_both("read_bytes_per_s", "rB/s", Unit.BYTES_PER_SECOND, "Bytes read per second."),
    *_both("write_bytes_per_s", "wB/s", Unit.BYTES_PER_SECOND, "Bytes written per second."),
    *_both("read_await_ms", "r_await", Unit.MILLISECONDS, "Mean time of a read.", better=Better.LOWER),
    *_both("write_await_ms", "w_await", Unit.MILLISECONDS, "Mean time of a write.", better=Better.LOWER),
    *_both("disks", "disks", Unit.COUNT, "Disks that are not built on others.", better=Better.NEITHER),
    _host(
        "clock_bound_ms",
        "clock +-",
        Unit.MILLISECONDS,
        "How exactly the host's clock is known: half of the shortest round trip of the last 16 exchanges.",
        better=Better.LOWER,
    ),
    _host("round_trip_ms", "rtt", Unit.MILLISECONDS, "Shortest round trip to the agent.", better=Better.LOWER),
    _host(
        "clock_error_ms",
        "clock err",
        Unit.MILLISECONDS,
        "How far its wall clock is from the controller's; nothing here depends on it.",
        hot=Thresholds(100, 1000),
        better=Better.LOWER,
    ),
    _host("late_ms", "late", Unit.MILLISECONDS, "How late it sampled, on the common clock.", better=Better.LOWER),
    _host("agent_cpu_pct", "agent", Unit.PERCENT, "CPU time of its agent's monitor, of one CPU.", better=Better.LOWER),
    _host("sent_bytes_per_s", "sent/s", Unit.BYTES_PER_SECOND, "Bytes per second its agent sent.", better=Better.LOWER),
)
_SOURCES = {
    "exchanges of four timestamps with the agent": ("clock_bound_ms", "round_trip_ms", "clock_error_ms", "late_ms"),
    "the load engine of the host": ("load_iops", "load_bytes_per_s", "load_await_ms"),
    "the agent": ("agent_cpu_pct", "sent_bytes_per_s"),
    "BPF on the block tracepoints of the host": ("p50_ms", "p99_ms", "p999_ms"),
}
_FIELDS = with_sources(_FIELDS, _SOURCES, "/proc/diskstats of the host")


def fleet_tables(interval: Interval, current: Table) -> dict[str, FrameTable]:
    """All fields of the hosts and of their total over one interval."""
    sums = fleet_sums(interval.before(FLEET.name), current, interval.elapsed_s)
    total = {name: np.array([_sum(sums[name])]) for name in (*_ADDED, "elapsed_s")}
    known = np.isfinite(sums["reads"])
    total["elapsed_s"] = np.array([_mean(sums["elapsed_s"][known])])
    hosts, together = _rates(sums), _rates(total)
    cells = interval.histograms(SERVICE)
    if cells is not None:
        of_rows = rows_of_cells(current.rows, cells)
        kept = of_rows >= 0
        found = RowCells(cells.scale, of_rows[kept].astype(np.uint32), cells.bucket[kept], cells.count[kept])
        hosts |= _percentiles(found, len(current.rows))
        together |= _percentiles(found.together(), 1)
    return {
        "fleet": FrameTable(current.rows, hosts | _link(sums)),
        "fleet_total": FrameTable(TOTAL_ROWS, together),
    }


def fleet_sums(previous: Table | None, current: Table, elapsed_s: float) -> dict[str, Values]:
    """Add up an interval of each host over the time between its own two samples; NaN where one is missing."""
    deltas = column_deltas(current.schema.columns, aligned(previous, current), current.values, elapsed_s=elapsed_s)
    own_s = deltas["sampled_ns"] / 1e9
    behind = deltas["clock_behind_ns"] / _NS_PER_MS
    names = [column.id for column in FLEET.columns]
    return {
        **{name: deltas[name] for name in names},
        "clock_error_ms": np.maximum(deltas["clock_ahead_ns"] / _NS_PER_MS, behind),
        "elapsed_s": np.where(own_s > 0, own_s, np.nan if np.isnan(elapsed_s) else elapsed_s),
    }


def _rates(sums: Mapping[str, Values]) -> dict[str, Values]:
    elapsed_s = sums["elapsed_s"]
    ios, time_ms = sums["reads"] + sums["writes"], sums["read_ms"] + sums["write_ms"]
    amounts = {
        "iops": ios,
        "reads_per_s": sums["reads"],
        "writes_per_s": sums["writes"],
        "bytes_per_s": sums["read_bytes"] + sums["write_bytes"],
        "read_bytes_per_s": sums["read_bytes"],
        "write_bytes_per_s": sums["write_bytes"],
        "load_iops": sums["load_ios"],
        "load_bytes_per_s": sums["load_bytes"],
        "in_flight": time_ms / 1e3,
    }
    return {field_id: ratio(amount, elapsed_s) for field_id, amount in amounts.items()} | {
        "await_ms": ratio(time_ms, ios),
        "read_await_ms": ratio(sums["read_ms"], sums["reads"]),
        "write_await_ms": ratio(sums["write_ms"], sums["writes"]),
        "load_await_ms": ratio(sums["load_latency_ns"] / _NS_PER_MS, sums["load_ios"]),
        "disks": sums["disks"],
    }


def _link(sums: Mapping[str, Values]) -> dict[str, Values]:
    return {
        "clock_bound_ms": sums["clock_bound_ns"] / _NS_PER_MS,
        "round_trip_ms": sums["round_trip_ns"] / _NS_PER_MS,
        "clock_error_ms": sums["clock_error_ms"],
        "late_ms": sums["late_ns"] / _NS_PER_MS,
        "agent_cpu_pct": 100.0 * ratio(sums["agent_cpu_ns"] / 1e9, sums["elapsed_s"]),
        "sent_bytes_per_s": ratio(sums["sent_bytes"], sums["elapsed_s"]),
    }


def fleet_figures(sums: Mapping[str, Values]) -> dict[str, Values]:
    """All fields of the sums of an interval, or of several added up; percentiles are of one interval only."""
    missing = np.full(len(sums["reads"]), np.nan)
    return dict.fromkeys(_PERCENTILES, missing) | _rates(sums) | _link(sums)


def _percentiles(cells: RowCells, rows: int) -> dict[str, Values]:
    found = percentiles_ns(cells, rows, tuple(_PERCENTILES.values())) / _NS_PER_MS
    return dict(zip(_PERCENTILES, found, strict=True))


def _sum(values: Values) -> float:
    return float(np.nansum(values)) if np.isfinite(values).any() else float("nan")


def _mean(values: Values) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def _labels(rows: Rows, topology: Topology) -> tuple[str, ...]:  # noqa: ARG001 - as all labels
    return tuple(safe_text(name) for name in rows.names)


_COLUMNS = ("iops", "bytes_per_s", "await_ms", "in_flight", "load_iops", "clock_bound_ms")

FLEET_HOSTS = Subject(
    table="fleet",
    title="host",
    one="host of the fleet",
    many="hosts of the fleet",
    fields=tuple(field for field in _FIELDS if field.table == "fleet"),
    raw=(FLEET,),
    derive=fleet_tables,
    report=Report(
        option="-F",
        help="Hosts of a fleet: what the disks of each did together, its load, and how exactly its clock is known.",
        columns=_COLUMNS,
        split_columns=(
            "reads_per_s",
            "writes_per_s",
            "read_bytes_per_s",
            "write_bytes_per_s",
            "read_await_ms",
            "write_await_ms",
        ),
        distribution_columns=("iops", "await_ms", "p50_ms", "p99_ms", "p999_ms"),
        unasked=False,
        averages=lambda: AddedSums("fleet", FLEET, fleet_sums, fleet_figures, latest=_LATEST),
    ),
    columns=tuple(field.id for field in _FIELDS if field.table == "fleet"),
    active=any_above("iops", "load_iops", "clock_bound_ms"),
    charts=("iops", "bytes_per_s", "await_ms", "load_iops"),
    labels=_labels,
    identity=lambda key, _topology: safe_text(key),
)
FLEET_TOTAL = Subject(
    table="fleet_total",
    title="fleet",
    one="fleet",
    fields=tuple(field for field in _FIELDS if field.table == "fleet_total"),
    columns=tuple(field.id for field in _FIELDS if field.table == "fleet_total"),
    charts=("iops", "bytes_per_s", "await_ms", "load_iops"),
    identity=lambda key, _topology: safe_text(key),
)
"""Partial where hosts are missing: what is known of the others."""
