"""I/O of the load engine over an interval: per target, and all targets together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from collectors.derive.counter_deltas import Values, aligned, column_deltas, instant
from collectors.derive.percentiles import RowCells, cells_of, percentiles_ns
from collectors.derive.queue_split import AtEnds, outstanding_io_s
from collectors.derive.quotients import Quotients
from collectors.field import Distribution, Field, Thresholds, Unit
from collectors.model import FrameTable, Rows, Table, Tier
from collectors.subject import Interval, Subject
from collectors.tables.load.schema import LOAD, SLOW_LOAD
from engine.replacing import replace
from engine.statistics.verdict import Better

TOTAL_ROWS = Rows(("load",), ("all targets",))

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


_LATENCY = Distribution("latency", LOAD.name)
_SERVICE = Distribution("service time", "load_service")

_load = partial(
    Field, table="load", source="the engine: its counts, and the clock read at submit and reap", tier=Tier.EXACT
)
_per_s = partial(_load, unit=Unit.PER_SECOND)
_bytes_per_s = partial(_load, unit=Unit.BYTES_PER_SECOND)
_mean_ms = partial(_load, unit=Unit.MILLISECONDS, factor=1e-6)
_percentile = partial(_load, unit=Unit.MILLISECONDS, per="iops", distribution=_LATENCY)

_FIELDS: tuple[Field, ...] = (
    _per_s("iops", "IOPS", "I/Os the engine completed per second.", sums="read_ios write_ios"),
    _per_s("reads_per_s", "r/s", "Reads the engine completed per second.", sums="read_ios"),
    _per_s("writes_per_s", "w/s", "Writes the engine completed per second.", sums="write_ios"),
    _bytes_per_s("bytes_per_s", "B/s", "Bytes the engine moved per second.", sums="read_bytes write_bytes"),
    _bytes_per_s("read_bytes_per_s", "rB/s", "Bytes the engine read per second.", sums="read_bytes"),
    _bytes_per_s("write_bytes_per_s", "wB/s", "Bytes the engine wrote per second.", sums="write_bytes"),
    _mean_ms(
        "await_ms",
        "lat",
        "Mean latency from submit to reap; in an open loop from the arrival.",
        hot=Thresholds(20, 50),
        sums="read_latency_ns write_latency_ns",
        per="iops",
    ),
    _mean_ms(
        "read_await_ms",
        "r lat",
        "Mean read latency from submit to reap.",
        hot=Thresholds(20, 50),
        sums="read_latency_ns",
        per="reads_per_s",
    ),
    _mean_ms(
        "write_await_ms",
        "w lat",
        "Mean write latency from submit to reap.",
        hot=Thresholds(20, 50),
        sums="write_latency_ns",
        per="writes_per_s",
    ),
    _percentile("p50_ms", "p50", "Half of the I/Os were faster.", percent=50.0),
    _percentile("p99_ms", "p99", "99 % of the I/Os were faster.", hot=Thresholds(50, 200), percent=99.0),
    _percentile(
        "p999_ms",
        "p99.9",
        "99.9 % of the I/Os were faster; needs 1,000 I/Os in the interval.",
        hot=Thresholds(100, 500),
        percent=99.9,
    ),
    _load(
        "max_ms",
        "Peak",
        "Peak latency: the largest in the interval.",
        Unit.MILLISECONDS,
        hot=Thresholds(100, 500),
        peak=True,
        distribution=_LATENCY,
    ),
    _load(
        "in_flight",
        "aqu-sz",
        "Outstanding I/Os of the engine, averaged over the interval.",
        Unit.COUNT,
        sums="outstanding_io_s",
    ),
    _load("queue_depth", "QD", "Outstanding I/Os the engine keeps per target.", Unit.COUNT, digits=4),
    _per_s(
        "errors_per_s",
        "err/s",
        "I/Os that failed, per second.",
        hot=Thresholds(0.001, 0.001),
        better=Better.LOWER,
        sums="new_errors",
    ),
    _mean_ms(
        "service_ms",
        "svc",
        "Mean time from submit to reap, in an open loop; in a closed one the latency is that.",
        hot=Thresholds(20, 50),
        sums="service_ns",
        per="iops",
    ),
    _percentile("service_p99_ms", "svc p99", "99 % of these times were shorter.", percent=99.0, distribution=_SERVICE),
    _per_s(
        "skipped_per_s",
        "skip/s",
        "Arrivals of an open loop that found no room in time.",
        better=Better.LOWER,
        sums="skipped",
    ),
    _load(
        "errors",
        "errors",
        "I/Os that failed since the load started.",
        Unit.COUNT,
        hot=Thresholds(1, 1),
        counts=True,
        since_start=True,
    ),
)
_FIELDS_OF_TOTAL = tuple(
    replace(field, table="load_total", help=f"{field.help} All targets together.") for field in _FIELDS
)
_PERCENTILES = {field.id: field.percent for field in _FIELDS if field.distribution is _LATENCY and field.percent}
_QUOTIENTS = Quotients(_FIELDS)


def load_tables(interval: Interval, current: Table) -> dict[str, FrameTable]:
    """Derive the tables "load" (a row per target) and "load_total" (one row).

    The total adds up all targets, also one that just left the stripe width; its percentiles come from the merged
    cells, its queue depth is that of a target inside the width. It is NaN while any target has no figures.
    """
    sums = _target_sums(interval.before(LOAD.name), current, interval.elapsed_s)
    sources = (_LATENCY.source, _SERVICE.source)
    cells = [None if found is None else cells_of(current.rows, found) for found in map(interval.histograms, sources)]
    together = [each and each.together() for each in cells]
    return {
        "load": FrameTable(current.rows, _figures(sums, interval.elapsed_s, *cells)),
        "load_total": FrameTable(TOTAL_ROWS, _figures(_total_sums(sums), interval.elapsed_s, *together)),
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


def _figures(
    sums: Mapping[str, Values], elapsed_s: float, cells: RowCells | None, services: RowCells | None
) -> dict[str, Values]:
    """Derive all fields; times from submit to reap, which differ from latencies in an open loop, only where known."""
    ios, known = sums["read_ios"] + sums["write_ios"], sums["service_ns"] > 0
    service_ns = np.where(known, sums["service_ns"], np.nan)
    p99_ns = np.full(len(ios), np.nan) if services is None else percentiles_ns(services, len(ios), (99.0,))[0]
    return {
        **_QUOTIENTS.of({**sums, "service_ns": service_ns, "elapsed_s": np.full(len(ios), elapsed_s)}),
        **_percentiles(cells, ios, sums["peak_ns"]),
        "service_p99_ms": np.where(known, p99_ns / _NS_PER_MS, np.nan),
        "max_ms": np.where(ios > 0, sums["peak_ns"] / _NS_PER_MS, np.nan),
        "queue_depth": sums["queue_depth"],
        "errors": sums["errors"],
    }


def _percentiles(cells: RowCells | None, ios: Values, peak_ns: Values) -> dict[str, Values]:
    """Percentiles of intervals with figures, never above the exact peak."""
    if cells is None:
        return {field_id: np.full(len(ios), np.nan) for field_id in _PERCENTILES}
    found = percentiles_ns(cells, len(ios), tuple(_PERCENTILES.values()))
    found = np.where(np.isnan(ios), np.nan, np.where(found > peak_ns, peak_ns, found)) / _NS_PER_MS
    return dict(zip(_PERCENTILES, found, strict=True))


LOAD_TARGETS = Subject(
    table="load",
    title="target",
    one="load",
    fields=_FIELDS,
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
    fields=_FIELDS_OF_TOTAL,
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
