"""I/O of the load engine over an interval: per target, and all targets together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

import numpy as np

from collectors.derive.counter_deltas import Values, aligned, column_deltas, instant, ratio
from collectors.derive.percentiles import RowCells, percentiles_ns, rows_of_cells
from collectors.derive.queue_split import AtEnds, outstanding_io_s
from collectors.field import Field, Shown, Thresholds, Unit, with_sources
from collectors.model import FrameTable, Histograms, Rows, Table, Tier
from collectors.subject import Interval, Subject
from collectors.tables.load.schema import LOAD, SLOW_LOAD
from engine.statistics.verdict import Better

TOTAL_ROWS = Rows(("load",), ("all targets",))

_PERCENTILES = {"p50_ms": 50.0, "p99_ms": 99.0, "p999_ms": 99.9}
_ADDED = (
    "read_ios",
    "read_bytes",
    "read_latency_ns",
    "write_ios",
    "write_bytes",
    "write_latency_ns",
    "skipped",
)
_NS_PER_MS = 1e6


def _load(id_: str, title: str, unit: Unit, help_: str, **shown: Unpack[Shown]) -> tuple[Field, Field]:
    return (
        Field(id_, "load", title, unit, help_, Tier.EXACT, **shown),
        Field(id_, "load_total", title, unit, f"{help_} All targets together.", Tier.EXACT, **shown),
    )


_FIELDS: tuple[Field, ...] = (
    *_load("iops", "IOPS", Unit.PER_SECOND, "I/Os the engine completed per second."),
    *_load("reads_per_s", "r/s", Unit.PER_SECOND, "Reads the engine completed per second."),
    *_load("writes_per_s", "w/s", Unit.PER_SECOND, "Writes the engine completed per second."),
    *_load("bytes_per_s", "B/s", Unit.BYTES_PER_SECOND, "Bytes the engine moved per second."),
    *_load("read_bytes_per_s", "rB/s", Unit.BYTES_PER_SECOND, "Bytes the engine read per second."),
    *_load("write_bytes_per_s", "wB/s", Unit.BYTES_PER_SECOND, "Bytes the engine wrote per second."),
    *_load(
        "await_ms",
        "lat",
        Unit.MILLISECONDS,
        "Mean latency from submit to reap; in an open loop from the arrival.",
        hot=Thresholds(20, 50),
    ),
    *_load(
        "read_await_ms", "r lat", Unit.MILLISECONDS, "Mean read latency from submit to reap.", hot=Thresholds(20, 50)
    ),
    *_load(
        "write_await_ms", "w lat", Unit.MILLISECONDS, "Mean write latency from submit to reap.", hot=Thresholds(20, 50)
    ),
    *_load("p50_ms", "p50", Unit.MILLISECONDS, "Half of the I/Os were faster."),
    *_load("p99_ms", "p99", Unit.MILLISECONDS, "99 % of the I/Os were faster.", hot=Thresholds(50, 200)),
    *_load(
        "p999_ms",
        "p99.9",
        Unit.MILLISECONDS,
        "99.9 % of the I/Os were faster; needs 1,000 I/Os in the interval.",
        hot=Thresholds(100, 500),
    ),
    *_load("max_ms", "Peak", Unit.MILLISECONDS, "Peak latency: the largest in the interval.", hot=Thresholds(100, 500)),
    *_load("in_flight", "aqu-sz", Unit.COUNT, "Outstanding I/Os of the engine, averaged over the interval."),
    *_load("queue_depth", "QD", Unit.COUNT, "Outstanding I/Os the engine keeps per target.", digits=4),
    *_load(
        "errors_per_s",
        "err/s",
        Unit.PER_SECOND,
        "I/Os that failed, per second.",
        hot=Thresholds(0.001, 0.001),
        better=Better.LOWER,
    ),
    *_load(
        "service_ms",
        "svc",
        Unit.MILLISECONDS,
        "Mean time from submit to reap, in an open loop; in a closed one the latency is that.",
        hot=Thresholds(20, 50),
    ),
    *_load("service_p99_ms", "svc p99", Unit.MILLISECONDS, "99 % of these times were shorter."),
    *_load(
        "skipped_per_s",
        "skip/s",
        Unit.PER_SECOND,
        "Arrivals of an open loop that found no room in time.",
        better=Better.LOWER,
    ),
    *_load(
        "errors",
        "errors",
        Unit.COUNT,
        "I/Os that failed since the load started.",
        hot=Thresholds(1, 1),
        counts=True,
        since_start=True,
    ),
)
_FIELDS = with_sources(_FIELDS, {}, "the engine: its counts, and the clock read at submit and reap")


def load_tables(interval: Interval, current: Table) -> dict[str, FrameTable]:
    """Derive the tables "load" (a row per target) and "load_total" (one row).

    The total adds up all targets, also one that just left the stripe width; its percentiles come from the merged
    cells, its queue depth is that of a target inside the width. It is NaN while any target has no figures.
    """
    histograms, services = interval.histograms("load"), interval.histograms("load_service")
    elapsed_s = interval.elapsed_s
    sums = _target_sums(interval.before(LOAD.name), current, elapsed_s)
    cells = None if histograms is None else _cells(current.rows, histograms)
    service_cells = None if services is None else _cells(current.rows, services)
    total = _total_sums(sums)
    return {
        "load": FrameTable(current.rows, _figures(sums, cells, elapsed_s) | _services(sums, service_cells)),
        "load_total": FrameTable(
            TOTAL_ROWS,
            _figures(total, cells and cells.together(), elapsed_s)
            | _services(total, service_cells and service_cells.together()),
        ),
    }


def _target_sums(previous: Table | None, current: Table, elapsed_s: float) -> dict[str, Values]:
    before = aligned(previous, current)
    columns = current.schema.columns
    deltas = column_deltas(columns, before, current.values, elapsed_s=elapsed_s)
    at_ends = AtEnds(*(instant(columns, values, "in_flight_now") for values in (before, current.values)))
    latency_ns = deltas["read_latency_ns"] + deltas["write_latency_ns"]
    service_ns = deltas["read_service_ns"] + deltas["write_service_ns"]
    # An arrival of an open loop is not outstanding while it waits for a free slot of the queue depth.
    outstanding_s = np.where(service_ns > 0, service_ns, latency_ns) / 1e9
    lengthened_ns = instant(columns, current.values, "outstanding_ns") - instant(columns, before, "outstanding_ns")
    integrated_io_s = np.maximum(outstanding_s + lengthened_ns / 1e9, 0.0)
    estimated_io_s = outstanding_io_s(deltas["read_ios"] + deltas["write_ios"], outstanding_s, at_ends, elapsed_s)
    peak_ns = np.fmax(deltas["read_peak_ns"], deltas["write_peak_ns"])
    return {name: deltas[name] for name in _ADDED} | {
        "outstanding_io_s": np.where(np.isnan(integrated_io_s), estimated_io_s, integrated_io_s),
        "service_ns": service_ns,
        "peak_ns": np.where(peak_ns > 0, peak_ns, np.nan),
        "new_errors": deltas["errors"],
        "errors": instant(columns, current.values, "errors"),
        "queue_depth": deltas["queue_depth"],
        "active": deltas["active"],
    }


def _total_sums(sums: Mapping[str, Values]) -> dict[str, Values]:
    """One row from the rows of all targets."""
    largest = {
        "peak_ns": sums["peak_ns"],
        "queue_depth": np.where(sums["active"] > 0, sums["queue_depth"], np.nan),
    }
    total = {name: np.atleast_1d(values.sum() if len(values) else np.nan) for name, values in sums.items()}
    return total | {name: np.atleast_1d(np.fmax.reduce(values, initial=np.nan)) for name, values in largest.items()}


def _figures(sums: Mapping[str, Values], cells: RowCells | None, elapsed_s: float) -> dict[str, Values]:
    ios = sums["read_ios"] + sums["write_ios"]
    latency_ns = sums["read_latency_ns"] + sums["write_latency_ns"]
    return {
        "iops": ratio(ios, elapsed_s),
        "reads_per_s": ratio(sums["read_ios"], elapsed_s),
        "writes_per_s": ratio(sums["write_ios"], elapsed_s),
        "bytes_per_s": ratio(sums["read_bytes"] + sums["write_bytes"], elapsed_s),
        "read_bytes_per_s": ratio(sums["read_bytes"], elapsed_s),
        "write_bytes_per_s": ratio(sums["write_bytes"], elapsed_s),
        "await_ms": ratio(latency_ns / _NS_PER_MS, ios),
        "read_await_ms": ratio(sums["read_latency_ns"] / _NS_PER_MS, sums["read_ios"]),
        "write_await_ms": ratio(sums["write_latency_ns"] / _NS_PER_MS, sums["write_ios"]),
        **_percentiles(cells, ios, sums["peak_ns"]),
        "max_ms": np.where(ios > 0, sums["peak_ns"] / _NS_PER_MS, np.nan),
        "in_flight": ratio(sums["outstanding_io_s"], elapsed_s),
        "queue_depth": sums["queue_depth"],
        "errors_per_s": ratio(sums["new_errors"], elapsed_s),
        "errors": sums["errors"],
        "skipped_per_s": ratio(sums["skipped"], elapsed_s),
    }


def _services(sums: Mapping[str, Values], cells: RowCells | None) -> dict[str, Values]:
    """Derive times from submit to reap, which differ from latencies in an open loop."""
    ios, service_ns = sums["read_ios"] + sums["write_ios"], sums["service_ns"]
    known = service_ns > 0
    p99_ns = np.full(len(ios), np.nan) if cells is None else percentiles_ns(cells, len(ios), (99.0,))[0]
    return {
        "service_ms": np.where(known, ratio(service_ns / _NS_PER_MS, ios), np.nan),
        "service_p99_ms": np.where(known, p99_ns / _NS_PER_MS, np.nan),
    }


def _percentiles(cells: RowCells | None, ios: Values, peak_ns: Values) -> dict[str, Values]:
    """Percentiles of intervals with figures, never above the exact peak."""
    if cells is None:
        return {field_id: np.full(len(ios), np.nan) for field_id in _PERCENTILES}
    found = percentiles_ns(cells, len(ios), tuple(_PERCENTILES.values()))
    found = np.where(np.isnan(ios), np.nan, np.where(found > peak_ns, peak_ns, found)) / _NS_PER_MS
    return dict(zip(_PERCENTILES, found, strict=True))


def _cells(rows: Rows, histograms: Histograms) -> RowCells:
    """Cells by the row order of the table; those of unknown rows are left out."""
    row = rows_of_cells(rows, histograms)
    kept = row >= 0
    return RowCells(histograms.scale, row[kept].astype(np.uint32), histograms.bucket[kept], histograms.count[kept])


LOAD_TARGETS = Subject(
    table="load",
    title="target",
    one="load",
    fields=tuple(field for field in _FIELDS if field.table == "load"),
    raw=(LOAD, SLOW_LOAD),
    derive=load_tables,
    columns=(
        "iops",
        "await_ms",
        "p99_ms",
        "max_ms",
        "bytes_per_s",
        "in_flight",
        "queue_depth",
        "errors",
        "read_await_ms",
        "write_await_ms",
        "p50_ms",
        "p999_ms",
        "service_ms",
        "skipped_per_s",
    ),
    charts=("iops", "await_ms", "p99_ms", "max_ms"),
)
LOAD_TOTAL = Subject(
    table="load_total",
    title="load",
    one="load total",
    fields=tuple(field for field in _FIELDS if field.table == "load_total"),
    raw=(LOAD,),
    charts=(
        "iops",
        "bytes_per_s",
        "await_ms",
        "p99_ms",
        "max_ms",
        "in_flight",
        "errors_per_s",
        "service_ms",
        "skipped_per_s",
    ),
)
