"""Hosts of a fleet, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from collectors.derive.counter_deltas import Values, aligned, column_deltas
from collectors.derive.percentiles import RowCells, cells_of, percentiles_ns
from collectors.derive.quotients import Quotients
from collectors.field import Field, Thresholds, Unit
from collectors.model import FrameTable, Rows, Table
from collectors.subject import AddedSums, Interval, Report, Subject, any_above
from collectors.tables.fleet.schema import FLEET, SERVICE
from engine.replacing import replace
from engine.statistics.verdict import Better
from engine.text import safe_text

TOTAL_ROWS = Rows(("fleet",), ("all hosts",))
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


_host = partial(Field, table="fleet", source="/proc/diskstats of the host")
_per_s = partial(_host, unit=Unit.PER_SECOND)
_bytes_per_s = partial(_host, unit=Unit.BYTES_PER_SECOND)
_mean_ms = partial(_host, unit=Unit.MILLISECONDS, better=Better.LOWER)
_percentile = partial(_host, unit=Unit.MILLISECONDS, source="BPF on the block tracepoints of the host", per="iops")
_clock_ms = partial(_mean_ms, source="exchanges of four timestamps with the agent")

_OF_ALL: tuple[Field, ...] = (
    _per_s("iops", "IOPS", "Reads and writes of disks per second, those not built on others.", sums="reads writes"),
    _bytes_per_s("bytes_per_s", "B/s", "Bytes read and written per second.", sums="read_bytes write_bytes"),
    _mean_ms("await_ms", "await", "Mean time of an I/O, in the queue and served.", sums="read_ms write_ms", per="iops"),
    _host(
        "in_flight",
        "aqu-sz",
        "I/Os outstanding on average: IOPS times their mean time.",
        Unit.COUNT,
        sums="read_ms write_ms",
        factor=1e-3,
    ),
    _percentile("p50_ms", "p50", "Service time that half of the I/Os stayed within. Exact only.", percent=50.0),
    _percentile("p99_ms", "p99", "Service time that 99 % of the I/Os stayed within. Exact only.", percent=99.0),
    _percentile(
        "p999_ms",
        "p99.9",
        "Service time that 99.9 % of the I/Os stayed within, with 1,000 I/Os in the interval. Exact only.",
        percent=99.9,
    ),
    _per_s(
        "load_iops",
        "load IOPS",
        "I/Os per second of lunscope's own load.",
        source="the load engine of the host",
        sums="load_ios",
    ),
    _bytes_per_s(
        "load_bytes_per_s",
        "load B/s",
        "Bytes per second of lunscope's own load.",
        source="the load engine of the host",
        sums="load_bytes",
    ),
    _mean_ms(
        "load_await_ms",
        "load lat",
        "Mean latency of that load.",
        source="the load engine of the host",
        sums="load_latency_ns",
        per="load_iops",
        factor=1e-6,
    ),
    _per_s("reads_per_s", "r/s", "Reads per second.", sums="reads"),
    _per_s("writes_per_s", "w/s", "Writes per second.", sums="writes"),
    _bytes_per_s("read_bytes_per_s", "rB/s", "Bytes read per second.", sums="read_bytes"),
    _bytes_per_s("write_bytes_per_s", "wB/s", "Bytes written per second.", sums="write_bytes"),
    _mean_ms("read_await_ms", "r_await", "Mean time of a read.", sums="read_ms", per="reads_per_s"),
    _mean_ms("write_await_ms", "w_await", "Mean time of a write.", sums="write_ms", per="writes_per_s"),
    _host("disks", "disks", "Disks that are not built on others.", Unit.COUNT, better=Better.NEITHER),
)
_OF_HOSTS = (
    _clock_ms(
        "clock_bound_ms",
        "clock +-",
        "How exactly the host's clock is known: half of the shortest round trip of the last 16 exchanges.",
    ),
    _clock_ms("round_trip_ms", "rtt", "Shortest round trip to the agent."),
    _clock_ms(
        "clock_error_ms",
        "clock err",
        "How far its wall clock is from the controller's; nothing here depends on it.",
        hot=Thresholds(100, 1000),
    ),
    _clock_ms("late_ms", "late", "How late it sampled, on the common clock."),
    _host(
        "agent_cpu_pct",
        "agent",
        "CPU time of its agent's monitor, of one CPU.",
        Unit.PERCENT,
        better=Better.LOWER,
        source="the agent",
        sums="agent_cpu_ns",
        factor=1e-7,
    ),
    _bytes_per_s(
        "sent_bytes_per_s",
        "sent/s",
        "Bytes per second its agent sent.",
        better=Better.LOWER,
        source="the agent",
        sums="sent_bytes",
    ),
)
_FIELDS = (*_OF_ALL, *_OF_HOSTS)
_FIELDS_OF_TOTAL = tuple(
    replace(field, table="fleet_total", help=f"{field.help} All hosts together.") for field in _OF_ALL
)
_PERCENTILES = {field.id: field.percent for field in _FIELDS if field.percent}
_QUOTIENTS, _QUOTIENTS_OF_TOTAL = Quotients(_FIELDS), Quotients(_FIELDS_OF_TOTAL)


def fleet_tables(interval: Interval, current: Table) -> dict[str, FrameTable]:
    """All fields of the hosts and of their total over one interval."""
    sums = fleet_sums(interval.before(FLEET.name), current, interval.elapsed_s)
    total = {name: np.array([_sum(sums[name])]) for name in (*_ADDED, "elapsed_s")}
    known = np.isfinite(sums["reads"])
    total["elapsed_s"] = np.array([_mean(sums["elapsed_s"][known])])
    hosts, together = _rates(sums), {**_QUOTIENTS_OF_TOTAL.of(total), "disks": total["disks"]}
    histograms = interval.histograms(SERVICE)
    if histograms is not None:
        cells = cells_of(current.rows, histograms)
        hosts |= _percentiles(cells, len(current.rows))
        together |= _percentiles(cells.together(), 1)
    return {
        "fleet": FrameTable(current.rows, hosts),
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
    """All fields but the percentiles."""
    return {
        **_QUOTIENTS.of(sums),
        "disks": sums["disks"],
        "clock_bound_ms": sums["clock_bound_ns"] / _NS_PER_MS,
        "round_trip_ms": sums["round_trip_ns"] / _NS_PER_MS,
        "clock_error_ms": sums["clock_error_ms"],
        "late_ms": sums["late_ns"] / _NS_PER_MS,
    }


def fleet_figures(sums: Mapping[str, Values]) -> dict[str, Values]:
    """All fields of the sums of an interval, or of several added up; percentiles are of one interval only."""
    missing = np.full(len(sums["reads"]), np.nan)
    return dict.fromkeys(_PERCENTILES, missing) | _rates(sums)


def _percentiles(cells: RowCells, rows: int) -> dict[str, Values]:
    found = percentiles_ns(cells, rows, tuple(_PERCENTILES.values())) / _NS_PER_MS
    return dict(zip(_PERCENTILES, found, strict=True))


def _sum(values: Values) -> float:
    return float(np.nansum(values)) if np.isfinite(values).any() else float("nan")


def _mean(values: Values) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


_COLUMNS = ("iops", "bytes_per_s", "await_ms", "in_flight", "load_iops", "clock_bound_ms")

FLEET_HOSTS = Subject(
    table="fleet",
    title="host",
    one="host of the fleet",
    many="hosts of the fleet",
    fields=_FIELDS,
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
    columns=tuple(field.id for field in _FIELDS),
    active=any_above("iops", "load_iops", "clock_bound_ms"),
    charts=("iops", "bytes_per_s", "await_ms", "load_iops"),
    identity=lambda key, _topology: safe_text(key),
)
FLEET_TOTAL = Subject(
    table="fleet_total",
    title="fleet",
    one="fleet",
    fields=_FIELDS_OF_TOTAL,
    columns=tuple(field.id for field in _FIELDS_OF_TOTAL),
    charts=("iops", "bytes_per_s", "await_ms", "load_iops"),
    identity=lambda key, _topology: safe_text(key),
)
"""Partial where hosts are missing: what is known of the others."""
