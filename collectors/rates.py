"""Two samples into a frame: the one place where raw counters become figures."""

from __future__ import annotations

import math

from collectors.derive.block_tables import block_tables, silent_rows
from collectors.derive.disk_interval import disk_intervals
from collectors.derive.errors import with_errors
from collectors.derive.exact import with_exact
from collectors.derive.group_looks import group_looks
from collectors.derive.host import host_table
from collectors.derive.load import load_tables
from collectors.derive.load_layout import load_logical_table, load_path_table
from collectors.derive.processes import process_table
from collectors.derive.tape import tape_table
from collectors.derive.traced import losses_of, traced
from collectors.model import Frame, FrameTable, Sample, Table


def derive(previous: Sample | None, current: Sample) -> Frame:
    """Derive every figure of the interval between two samples; pure.

    NaN marks what is not known: everything but gauges on the first sample, for rows that are new and after a counter
    reset, and whatever rests on a missing value. Rates divide by CLOCK_MONOTONIC, so that steps of the wall clock do
    not matter and rates over a gap are right; where that clock did not advance the sample counts as a first one.
    Peaks and histograms belong to the time since the sample that was read before `current`.

    Args:
        previous: the sample before in the recording, None at a start.
        current: the sample at the end of the interval.
    """
    elapsed_s = interval_s(previous, current)
    if math.isnan(elapsed_s):
        previous = None
    return Frame(
        time_ns=current.time_ns,
        monotonic_ns=current.monotonic_ns,
        elapsed_s=elapsed_s,
        tables=_tables(previous, current, elapsed_s),
        topology=current.topology,
        events=current.events,
        late_s=current.late_ns / 1e9,
        cost_pct=100.0 * current.cost_ns / 1e9 / elapsed_s,
        losses=losses_of(current),
    )


def interval_s(previous: Sample | None, current: Sample) -> float:
    """Length of the interval between two samples, NaN where there is none."""
    if previous is None or current.monotonic_ns <= previous.monotonic_ns:
        return float("nan")
    return (current.monotonic_ns - previous.monotonic_ns) / 1e9


def _tables(previous: Sample | None, current: Sample, elapsed_s: float) -> dict[str, FrameTable]:
    def before(name: str) -> Table | None:
        return None if previous is None else previous.tables.get(name)

    tables: dict[str, FrameTable] = {}
    for name, table in current.tables.items():
        if name == "disk":
            intervals = list(disk_intervals(before(name), table, elapsed_s, current.topology.host.long_bits))
            looks = group_looks(before("group"), current.tables.get("group"), elapsed_s)
            silent = silent_rows(table)
            block = block_tables(table.rows, intervals, current.topology, elapsed_s, silent, looks=looks)
            tables |= with_exact(block, traced(previous, current), table.rows, current.topology.graph, silent)
        elif name == "host":
            tables["host"] = host_table(before(name), table, elapsed_s)
        elif name == "process":
            tables["processes"] = process_table(table)
        elif name == "tape":
            tables["tapes"] = tape_table(before(name), table, elapsed_s)
        elif name == "load":
            service = current.histograms.get("load_service")
            tables |= load_tables(before(name), table, current.histograms.get("load"), elapsed_s, service)
        elif name == "load_path":
            tables["load_paths"] = load_path_table(before(name), table, elapsed_s)
        elif name == "load_logical":
            tables["load_logical"] = load_logical_table(before(name), table, elapsed_s)
    raw_before = None if previous is None else previous.tables
    return with_errors(tables, raw_before, current.tables, current.topology.graph)
