"""What looking costs: CPU time of the programs of exact time in the kernel, and of the threads that sample."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from collectors.model import MISSING, Looking, Sample, Table
from collectors.tables.block.schema import TRACE, TRACER

ESTIMATED_NS = 300.0
"""CPU time of the programs per I/O where the kernel keeps no statistics of programs, as it does by default.

A stated figure: the kernel measured 200 to 440 ns, in medians, on two CPUs (docs/numbers.md, Exact time).
"""

RUNS_OF_IO = 3
"""Fewest runs of programs that an I/O takes: its begin, its end, and the second copy of what sees the end."""

_COUNTED = ("reads", "writes", "others")


def looking_of(previous: Sample | None, current: Sample, elapsed_s: float) -> Looking | None:
    """Compute the cost of an interval; None if its length is not known.

    The kernel's statistics are used if by them programs ran for all I/Os (kernel.bpf_stats_enabled, which is never
    turned on from here); else it is the number of I/Os times ESTIMATED_NS. NaN where tracing began or ended.
    """
    if previous is None or not elapsed_s > 0:
        return None
    ios, programs_ns, is_measured = _programs(previous, current)
    return Looking(elapsed_s, current.cost_ns / 1e9, programs_ns / 1e9, ios, is_measured)


def added_up(parts: Iterable[Looking]) -> Looking | None:
    """Add up intervals; None without any.

    Those without tracing have no part in what the programs took. If the kernel measured some, these speak for all.
    """
    known = list(parts)
    if not known:
        return None
    traced = [part for part in known if not np.isnan(part.ios)]
    measured = [part for part in traced if part.is_measured]
    ios, spoken_for = (sum(part.ios for part in parts) for parts in (traced, measured or traced))
    programs_s = sum(part.programs_s for part in measured or traced)
    return Looking(
        sum(part.elapsed_s for part in known),
        sum(part.sampling_s for part in known),
        programs_s * ios / spoken_for if spoken_for else programs_s if traced else np.nan,
        ios if traced else np.nan,
        bool(measured),
    )


def looking_lines(cost: Looking) -> tuple[str, str]:
    """Say what it cost to look at I/Os."""
    basis = "measured by the kernel" if cost.is_measured else "a stated figure: kernel.bpf_stats_enabled is 0"
    return (
        f"Looking cost {cost.sampling_pct:.1f} % of a CPU for samples, {cost.programs_pct:.1f} % for exact time in the "
        "kernel,",
        f"{cost.ns_per_io:.0f} ns per I/O ({basis})",
    )


def _programs(previous: Sample, current: Sample) -> tuple[float, float, bool]:
    """I/Os traced, the CPU time of the programs in ns, and whether that was measured."""
    before, now = previous.tables.get(TRACER.name), current.tables.get(TRACER.name)
    started = _value(now, "started_ns")
    if started is None or started != _value(before, "started_ns"):
        return np.nan, np.nan, False
    ios = max(0, _ios(current) - _ios(previous))
    runs, time_ns = (_increase(before, now, name) for name in ("program_runs", "program_time_ns"))
    if time_ns and runs >= RUNS_OF_IO * ios:
        return float(ios), float(time_ns), True
    return float(ios), ios * ESTIMATED_NS, False


def _increase(before: Table | None, now: Table | None, name: str) -> int:
    old, new = _value(before, name), _value(now, name)
    return 0 if old is None or new is None else max(0, new - old)


def _value(table: Table | None, name: str) -> int | None:
    if table is None or not len(table.rows) or all(column.id != name for column in table.schema.columns):
        return None
    value = int(table.column(name)[0])
    return None if value == int(MISSING) else value


def _ios(sample: Sample) -> int:
    table = sample.tables.get(TRACE.name)
    return 0 if table is None else sum(int(table.column(name).sum()) for name in _COUNTED)
