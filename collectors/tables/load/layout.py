"""I/O of the load over each path of a LUN, and its logical I/Os, over an interval."""

from __future__ import annotations

from functools import partial

import numpy as np

from collectors.derive.counter_deltas import Values, aligned, column_deltas, instant, ratio
from collectors.derive.queue_split import AtEnds, outstanding_io_s
from collectors.derive.quotients import Quotients
from collectors.field import Field, Thresholds, Unit
from collectors.model import FrameTable, Table, Tier
from collectors.subject import Interval, Subject
from collectors.tables.load.schema import LOAD_LOGICAL, LOAD_PATH
from engine.replacing import replace
from engine.statistics.verdict import Better

_NS_PER_MS = 1e6


_load_path = partial(
    Field, table="load_paths", source="the engine: its counts, and the clock read at submit and reap", tier=Tier.EXACT
)

_OF_BOTH: tuple[Field, ...] = (
    _load_path("iops", "IOPS", "Completed per second.", Unit.PER_SECOND, sums="read_ios write_ios"),
    _load_path("bytes_per_s", "B/s", "Bytes moved per second.", Unit.BYTES_PER_SECOND, sums="read_bytes write_bytes"),
    _load_path(
        "await_ms",
        "lat",
        "Mean latency.",
        Unit.MILLISECONDS,
        hot=Thresholds(20, 50),
        sums="read_latency_ns write_latency_ns",
        per="iops",
        factor=1e-6,
    ),
    _load_path("read_await_ms", "r lat", "Mean read latency.", Unit.MILLISECONDS, hot=Thresholds(20, 50)),
    _load_path("write_await_ms", "w lat", "Mean write latency.", Unit.MILLISECONDS, hot=Thresholds(20, 50)),
    _load_path(
        "max_ms",
        "Peak",
        "Peak latency: the largest in the interval.",
        Unit.MILLISECONDS,
        hot=Thresholds(100, 500),
        peak=True,
    ),
    _load_path(
        "errors_per_s",
        "err/s",
        "Failed per second; another path may have made it good.",
        Unit.PER_SECOND,
        hot=Thresholds(0.001, 0.001),
        better=Better.LOWER,
        sums="errors",
    ),
)
_OF_PATHS = (
    _load_path("in_flight", "aqu-sz", "Outstanding I/Os of the engine on this path, by Little's law.", Unit.COUNT),
    _load_path(
        "errors",
        "errors",
        "Attempts that failed on this path since the load started.",
        Unit.COUNT,
        counts=True,
        since_start=True,
    ),
    _load_path("failed", "failed", "1 while the engine leaves this path out and only probes it.", Unit.COUNT),
)
_PATH_FIELDS = (
    *(replace(field, help=f"I/Os of the engine over one path of a LUN. {field.help}") for field in _OF_BOTH),
    *_OF_PATHS,
)
_LOGICAL_FIELDS = tuple(
    replace(field, table="load_logical", help=f"I/Os before they were cut or copied. {field.help}")
    for field in _OF_BOTH
)
_QUOTIENTS = Quotients(_OF_BOTH)


def load_path_tables(interval: Interval, current: Table) -> dict[str, FrameTable]:
    """Derive the table "load_paths": a row per path of targets that have several."""
    columns, before = current.schema.columns, aligned(interval.before(LOAD_PATH.name), current)
    elapsed_s = interval.elapsed_s
    deltas = column_deltas(columns, before, current.values, elapsed_s=elapsed_s)
    ios, latency_ns = _ios(deltas), _latency_ns(deltas)
    at_ends = AtEnds(*(instant(columns, values, "in_flight_now") for values in (before, current.values)))
    figures = _common(deltas, elapsed_s) | {
        "in_flight": ratio(outstanding_io_s(ios, latency_ns / 1e9, at_ends, elapsed_s), elapsed_s),
        "errors": instant(columns, current.values, "errors"),
        "failed": instant(columns, current.values, "failed"),
    }
    return {"load_paths": FrameTable(current.rows, figures)}


def load_logical_tables(interval: Interval, current: Table) -> dict[str, FrameTable]:
    """Derive the table "load_logical": I/Os before they were cut into parts or copied, one row."""
    before, elapsed_s = aligned(interval.before(LOAD_LOGICAL.name), current), interval.elapsed_s
    deltas = column_deltas(current.schema.columns, before, current.values, elapsed_s=elapsed_s)
    return {"load_logical": FrameTable(current.rows, _common(deltas, elapsed_s))}


def _common(deltas: dict[str, Values], elapsed_s: float) -> dict[str, Values]:
    ios = _ios(deltas)
    peak_ns = np.fmax(deltas["read_peak_ns"], deltas["write_peak_ns"])
    return {
        **_QUOTIENTS.of({**deltas, "elapsed_s": np.full(len(ios), elapsed_s)}),
        "read_await_ms": ratio(deltas["read_latency_ns"] / _NS_PER_MS, deltas["read_ios"]),
        "write_await_ms": ratio(deltas["write_latency_ns"] / _NS_PER_MS, deltas["write_ios"]),
        "max_ms": np.where((ios > 0) & (peak_ns > 0), peak_ns / _NS_PER_MS, np.nan),
    }


def _ios(deltas: dict[str, Values]) -> Values:
    return deltas["read_ios"] + deltas["write_ios"]


def _latency_ns(deltas: dict[str, Values]) -> Values:
    return deltas["read_latency_ns"] + deltas["write_latency_ns"]


LOAD_PATHS = Subject(
    table="load_paths",
    title="path",
    one="load path",
    fields=_PATH_FIELDS,
    raw=(LOAD_PATH,),
    derive=load_path_tables,
)
LOAD_LOGICAL_IOS = Subject(
    table="load_logical",
    title="load",
    one="load logical",
    fields=_LOGICAL_FIELDS,
    raw=(LOAD_LOGICAL,),
    derive=load_logical_tables,
)
