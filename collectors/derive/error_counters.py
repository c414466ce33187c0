"""Error counters of paths and ports: new errors of the interval, and totals."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import Values, aligned, column_deltas, instant, positions
from collectors.derive.roles import host_of_row, roles
from collectors.model import FrameTable, Rows, Table, Topology

Tables = Mapping[str, Table]

_OF_PATHS = {
    "new_errors": "errors",
    "new_timeouts": "timeouts",
    "new_retries": "retries",
    "new_failovers": "failovers",
}
_TOTALS = {"errors": "errors", "timeouts": "timeouts"}
_ADDED_BY_PORT = ("new_errors", "new_timeouts", "new_retries")
_OF_PORTS = {
    "new_command_errors": "command_errors",
    "new_link_errors": "link_errors",
    "new_frame_errors": "frame_errors",
    "new_resets": "resets",
    "new_reconnects": "reconnects",
}


def with_errors(
    frame: Mapping[str, FrameTable], previous: Tables | None, current: Tables, topology: Topology, elapsed_s: float
) -> dict[str, FrameTable]:
    """Add error columns to the frame tables of paths and groups of them; other tables are unchanged.

    These counters are read less often than disks: new errors appear in the interval in which they were read. A port,
    and the host, has the sum of its paths, NaN where none of them is counted.

    Args:
        frame: with or without these tables.
        previous: raw tables of the previous sample, None if there is none.
        current: raw tables of the sample at the end of the interval.
        topology: of the current sample.
        elapsed_s: length of the interval.
    """
    if "paths" not in frame or not current.keys() & {"path_errors", "port_errors"}:
        return dict(frame)
    paths, ports = frame["paths"], frame["hbas"]
    of_paths = _columns(paths.rows, (previous, current, elapsed_s), "path_errors", _OF_PATHS)
    of_ports = _columns(ports.rows, (previous, current, elapsed_s), "port_errors", _OF_PORTS)
    disks = current["disk"].rows
    part = roles(disks, topology.graph)
    groups = {
        "hbas": part.port_of_row,
        "target_ports": part.target_of_row,
        "whole_host": host_of_row(disks, topology),
    }
    extended = {**frame, "paths": paths.with_columns(of_paths), "hbas": ports.with_columns(of_ports)}
    for name, group_of_row in groups.items():
        table, group = extended[name], group_of_row[part.path_at]
        added = {field_id: _summed(of_paths[field_id], group, len(table.rows)) for field_id in _ADDED_BY_PORT}
        extended[name] = table.with_columns(added)
    return extended


def _columns(
    rows: Rows, interval: tuple[Tables | None, Tables, float], name: str, fields: Mapping[str, str]
) -> dict[str, Values]:
    """Deltas, and for paths the totals too, in the order of `rows`; NaN where nothing is counted."""
    previous, current, elapsed_s = interval
    table = current.get(name)
    if table is None:
        return {field_id: np.full(len(rows), np.nan) for field_id in fields}
    columns = table.schema.columns
    deltas = column_deltas(columns, aligned((previous or {}).get(name), table), table.values, elapsed_s=elapsed_s)
    found = {field_id: deltas[column] for field_id, column in fields.items()}
    if name == "path_errors":
        found |= {field_id: instant(columns, table.values, column) for field_id, column in _TOTALS.items()}
    at = _row_positions(table.rows, rows)
    return {field_id: np.append(values, np.nan)[at] for field_id, values in found.items()}


@lru_cache(maxsize=8)
def _row_positions(there: Rows, wanted: Rows) -> NDArray[np.intp]:
    """Position of each wanted row; -1, the index of the trailing NaN, if it is missing."""
    return positions(there, wanted.keys)


def _summed(values: Values, group: NDArray[np.intp], groups: int) -> Values:
    """Add up the known values of each group."""
    known = (group >= 0) & ~np.isnan(values)
    total = np.bincount(group[known], values[known], minlength=groups)
    return np.where(np.bincount(group[known], minlength=groups) > 0, total, np.nan)
