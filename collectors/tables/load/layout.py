"""I/O of the load over each path of a LUN, and its logical I/Os, over an interval."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from collectors.derive.counter_deltas import Values, aligned, column_deltas, instant, ratio
from collectors.derive.queue_split import AtEnds, outstanding_io_s
from collectors.field import Field, Shown, Thresholds, Unit, with_sources
from collectors.model import FrameTable, Table, Tier
from collectors.subject import Interval, Subject
from collectors.tables.load.schema import LOAD_LOGICAL, LOAD_PATH
from engine.statistics.verdict import Better

_NS_PER_MS = 1e6


def _load_path(id_: str, title: str, unit: Unit, help_: str, **shown: Unpack[Shown]) -> Field:
    return Field(id_, "load_paths", title, unit, help_, Tier.EXACT, **shown)


def _layout(id_: str, title: str, unit: Unit, help_: str, **shown: Unpack[Shown]) -> tuple[Field, Field]:
    return (
        _load_path(id_, title, unit, f"I/Os of the engine over one path of a LUN. {help_}", **shown),
        Field(id_, "load_logical", title, unit, f"I/Os before they were cut or copied. {help_}", Tier.EXACT, **shown),
    )


_FIELDS: tuple[Field, ...] = (
    *_layout("iops", "IOPS", Unit.PER_SECOND, "Completed per second."),
    *_layout("bytes_per_s", "B/s", Unit.BYTES_PER_SECOND, "Bytes moved per second."),
    *_layout("await_ms", "lat", Unit.MILLISECONDS, "Mean latency.", hot=Thresholds(20, 50)),
    *_layout("read_await_ms", "r lat", Unit.MILLISECONDS, "Mean read latency.", hot=Thresholds(20, 50)),
    *_layout("write_await_ms", "w lat", Unit.MILLISECONDS, "Mean write latency.", hot=Thresholds(20, 50)),
    *_layout(
        "max_ms", "Peak", Unit.MILLISECONDS, "Peak latency: the largest in the interval.", hot=Thresholds(100, 500)
    ),
    *_layout(
        "errors_per_s",
        "err/s",
        Unit.PER_SECOND,
        "Failed per second; another path may have made it good.",
        hot=Thresholds(0.001, 0.001),
        better=Better.LOWER,
    ),
    _load_path("in_flight", "aqu-sz", Unit.COUNT, "Outstanding I/Os of the engine on this path, by Little's law."),
    _load_path(
        "errors",
        "errors",
        Unit.COUNT,
        "Attempts that failed on this path since the load started.",
        counts=True,
        since_start=True,
    ),
    _load_path("failed", "failed", Unit.COUNT, "1 while the engine leaves this path out and only probes it."),
)
_FIELDS = with_sources(_FIELDS, {}, "the engine: its counts, and the clock read at submit and reap")


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
        "iops": ratio(ios, elapsed_s),
        "bytes_per_s": ratio(deltas["read_bytes"] + deltas["write_bytes"], elapsed_s),
        "await_ms": ratio(_latency_ns(deltas) / _NS_PER_MS, ios),
        "read_await_ms": ratio(deltas["read_latency_ns"] / _NS_PER_MS, deltas["read_ios"]),
        "write_await_ms": ratio(deltas["write_latency_ns"] / _NS_PER_MS, deltas["write_ios"]),
        "max_ms": np.where((ios > 0) & (peak_ns > 0), peak_ns / _NS_PER_MS, np.nan),
        "errors_per_s": ratio(deltas["errors"], elapsed_s),
    }


def _ios(deltas: dict[str, Values]) -> Values:
    return deltas["read_ios"] + deltas["write_ios"]


def _latency_ns(deltas: dict[str, Values]) -> Values:
    return deltas["read_latency_ns"] + deltas["write_latency_ns"]


LOAD_PATHS = Subject(
    table="load_paths",
    title="path",
    one="load path",
    fields=tuple(field for field in _FIELDS if field.table == "load_paths"),
    raw=(LOAD_PATH,),
    derive=load_path_tables,
)
LOAD_LOGICAL_IOS = Subject(
    table="load_logical",
    title="load",
    one="load logical",
    fields=tuple(field for field in _FIELDS if field.table == "load_logical"),
    raw=(LOAD_LOGICAL,),
    derive=load_logical_tables,
)
