"""What the load did over each path of a LUN, and what its logical I/Os took, over an interval."""

from __future__ import annotations

import numpy as np

from collectors.derive.growth import Values, aligned, growth, instant, ratio
from collectors.derive.little import outstanding_io_s
from collectors.model import FrameTable, Table

_NS_PER_MS = 1e6


def load_path_table(previous: Table | None, current: Table, elapsed_s: float) -> FrameTable:
    """Derive the table "load_paths": a row per path of targets that have several."""
    columns, before = current.schema.columns, aligned(previous, current)
    grown = growth(columns, before, current.values)
    ios, latency_ns = _ios(grown), _latency_ns(grown)
    held = np.minimum(instant(columns, before, "in_flight_now"), instant(columns, current.values, "in_flight_now"))
    figures = _common(grown, elapsed_s) | {
        "in_flight": ratio(outstanding_io_s(ios, latency_ns / 1e9, held, elapsed_s), elapsed_s),
        "errors": instant(columns, current.values, "errors"),
        "failed": instant(columns, current.values, "failed"),
    }
    return FrameTable(current.rows, figures)


def load_logical_table(previous: Table | None, current: Table, elapsed_s: float) -> FrameTable:
    """Derive the table "load_logical": I/Os before they were cut into parts or copied, one row."""
    grown = growth(current.schema.columns, aligned(previous, current), current.values)
    return FrameTable(current.rows, _common(grown, elapsed_s))


def _common(grown: dict[str, Values], elapsed_s: float) -> dict[str, Values]:
    ios = _ios(grown)
    peak_ns = np.fmax(grown["read_peak_ns"], grown["write_peak_ns"])
    return {
        "iops": ratio(ios, elapsed_s),
        "bytes_per_s": ratio(grown["read_bytes"] + grown["write_bytes"], elapsed_s),
        "await_ms": ratio(_latency_ns(grown) / _NS_PER_MS, ios),
        "read_await_ms": ratio(grown["read_latency_ns"] / _NS_PER_MS, grown["read_ios"]),
        "write_await_ms": ratio(grown["write_latency_ns"] / _NS_PER_MS, grown["write_ios"]),
        "max_ms": np.where((ios > 0) & (peak_ns > 0), peak_ns / _NS_PER_MS, np.nan),
        "errors_per_s": ratio(grown["errors"], elapsed_s),
    }


def _ios(grown: dict[str, Values]) -> Values:
    return grown["read_ios"] + grown["write_ios"]


def _latency_ns(grown: dict[str, Values]) -> Values:
    return grown["read_latency_ns"] + grown["write_latency_ns"]
