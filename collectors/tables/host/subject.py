"""CPU, memory and pressure of the host over an interval."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from collectors.derive.counter_deltas import Raw, Values, aligned, column_deltas, present, ratio, share_pct
from collectors.field import Field, Unit
from collectors.model import MISSING, Column, FrameTable, Table
from collectors.sampling.reading import Collector
from collectors.subject import Interval, SampledHost, Subject
from collectors.tables.host.schema import HOST
from engine.statistics.verdict import Better

_CPU_STATES = ("user", "system", "iowait", "irq", "steal", "idle")
_MAY_FALL = ("cpu_idle_us", "cpu_iowait_us")
"""proc_stat(5): iowait is not reliable and may decrease; idle is made up of the same tick accounting."""

_GAUGES = ("memory_available_bytes", "memory_total_bytes", "dirty_bytes", "writeback_bytes", "swap_used_bytes")
_PAGED = ("swap_in_bytes", "swap_out_bytes")
_PRESSURES = ("psi_io_some", "psi_io_full", "psi_cpu_some", "psi_memory_some")

_host = partial(Field, table="host", source="/proc/stat (proc_stat(5))")
_cpu_pct = partial(_host, unit=Unit.PERCENT)
_memory = partial(_host, unit=Unit.BYTES, source="/proc/meminfo")
_paging = partial(
    _host, unit=Unit.BYTES_PER_SECOND, source="/proc/vmstat, while the host has swap", better=Better.LOWER
)
_pressure = partial(_host, unit=Unit.PERCENT, source="/proc/pressure", better=Better.LOWER)

_FIELDS: tuple[Field, ...] = (
    _cpu_pct("cpu_user_pct", "user", "CPU time in user space, of all CPUs."),
    _cpu_pct("cpu_system_pct", "sys", "CPU time in the kernel, of all CPUs."),
    _cpu_pct("cpu_iowait_pct", "iowait", "Idle with I/O outstanding (6.5+: idle io_uring too)."),
    _cpu_pct("cpu_irq_pct", "irq", "CPU time in interrupts, of all CPUs."),
    _cpu_pct("cpu_steal_pct", "steal", "CPU time taken by the hypervisor, of all CPUs."),
    _cpu_pct("cpu_idle_pct", "idle", "CPU time idle, of all CPUs."),
    _memory("memory_available_bytes", "mem free", "Memory available without swapping."),
    _memory("memory_total_bytes", "mem", "Memory of the host."),
    _memory("dirty_bytes", "dirty", "Page cache waiting to be written."),
    _memory("writeback_bytes", "writeback", "Page cache being written now."),
    _paging("swap_in_bytes_per_s", "swap in", "Bytes per second read back from swap, zram included."),
    _paging("swap_out_bytes_per_s", "swap out", "Bytes per second written to swap, zram included."),
    _memory("swap_used_bytes", "swap", "Swap in use.", better=Better.LOWER),
    _pressure("psi_io_some_pct", "psi io", "Time in which some task waited for I/O (6.5+: idle io_uring too)."),
    _pressure("psi_io_full_pct", "psi io full", "Time in which all tasks waited for I/O; same caveat."),
    _pressure("psi_cpu_some_pct", "psi cpu", "Time in which some task waited for a CPU."),
    _pressure("psi_memory_some_pct", "psi mem", "Time in which some task waited for memory."),
)


def host_tables(interval: Interval, current: Table) -> dict[str, FrameTable]:
    """All host fields; CPU shares are of the CPU time that passed, pressure shares of the interval."""
    before = aligned(interval.before(HOST.name), current)
    columns = current.schema.columns
    now = _held(columns, before, current.values)
    deltas = column_deltas(columns, before, now, elapsed_s=interval.elapsed_s, source_of=_source)
    figures = _cpu(deltas) | {gauge: deltas[gauge] for gauge in _GAUGES}
    figures |= {f"{name}_pct": share_pct(deltas[f"{name}_us"] / 1e6, interval.elapsed_s) for name in _PRESSURES}
    figures |= {f"{name}_per_s": deltas[name] / interval.elapsed_s for name in _PAGED}
    return {"host": FrameTable(current.rows, figures)}


def _source(column: Column) -> str:
    """Separate the files of /proc, which name the columns: a CPU that goes away resets no other."""
    return column.id.partition("_")[0]


def _held(columns: tuple[Column, ...], before: Raw, now: Raw) -> Raw:
    """Clamp the counters that may decrease slightly to their previous values."""
    held = now.copy()
    for position, column in enumerate(columns):
        if column.id in _MAY_FALL:
            old = before[:, position]
            held[:, position] = np.where(old == MISSING, held[:, position], np.maximum(held[:, position], old))
    return held


def _cpu(deltas: Mapping[str, Values]) -> dict[str, Values]:
    """Shares of all CPU time; states a kernel does not have are left out of the sum."""
    spent = {state: deltas[f"cpu_{state}_us"] for state in _CPU_STATES}
    total = spent["user"] + spent["system"] + spent["idle"]
    for state in ("iowait", "irq", "steal"):
        total = total + present(spent[state], spent[state])
    return {f"cpu_{state}_pct": 100.0 * ratio(time_us, total) for state, time_us in spent.items()}


def _readers(host: SampledHost) -> tuple[Collector, ...]:
    from collectors.tables.host.reader import HostCollector  # noqa: PLC0415 (see collectors.subject.Readers)

    return (HostCollector(host.procfs),)


HOSTS = Subject(
    table="host", title="host", one="host", fields=_FIELDS, raw=(HOST,), readers=_readers, derive=host_tables
)
