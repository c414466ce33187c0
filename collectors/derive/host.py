"""CPU, memory and pressure of the host over an interval."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from collectors.derive.growth import Raw, Values, aligned, growth, present, ratio, share_pct
from collectors.model import MISSING, Column, FrameTable, Table

_CPU_STATES = ("user", "system", "iowait", "irq", "steal", "idle")
_MAY_FALL = ("cpu_idle_us", "cpu_iowait_us")
"""proc_stat(5): iowait is not reliable and may decrease; idle is made up of the same tick accounting."""

_GAUGES = ("memory_available_bytes", "memory_total_bytes", "dirty_bytes", "writeback_bytes")
_PRESSURES = ("psi_io_some", "psi_io_full", "psi_cpu_some", "psi_memory_some")


def host_table(previous: Table | None, current: Table, elapsed_s: float) -> FrameTable:
    """All host fields; CPU shares are of the CPU time that passed, pressure shares of the interval."""
    before = aligned(previous, current)
    columns = current.schema.columns
    now = _held(columns, before, current.values)
    grown = growth(columns, before, now, source_of=lambda column: column.id.partition("_")[0])
    figures = _cpu(grown) | {gauge: grown[gauge] for gauge in _GAUGES}
    figures |= {f"{name}_pct": share_pct(grown[f"{name}_us"] / 1e6, elapsed_s) for name in _PRESSURES}
    return FrameTable(current.rows, figures)


def _held(columns: tuple[Column, ...], before: Raw, now: Raw) -> Raw:
    """Hold the counters that may step back a little where they were."""
    held = now.copy()
    for position, column in enumerate(columns):
        if column.id in _MAY_FALL:
            old = before[:, position]
            held[:, position] = np.where(old == MISSING, held[:, position], np.maximum(held[:, position], old))
    return held


def _cpu(grown: Mapping[str, Values]) -> dict[str, Values]:
    """Shares of all CPU time; states a kernel does not have are left out of the sum."""
    spent = {state: grown[f"cpu_{state}_us"] for state in _CPU_STATES}
    total = spent["user"] + spent["system"] + spent["idle"]
    for state in ("iowait", "irq", "steal"):
        total = total + present(spent[state], spent[state])
    return {f"cpu_{state}_pct": 100.0 * ratio(time_us, total) for state, time_us in spent.items()}
