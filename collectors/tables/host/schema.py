"""The raw table of the host."""

from __future__ import annotations

from collectors.model import Column, Kind, Schema

HOST = Schema(
    "host",
    (
        Column("cpu_user_us", Kind.COUNTER),
        Column("cpu_system_us", Kind.COUNTER),
        Column("cpu_idle_us", Kind.COUNTER),
        Column("cpu_iowait_us", Kind.COUNTER),
        Column("cpu_irq_us", Kind.COUNTER),
        Column("cpu_steal_us", Kind.COUNTER),
        Column("cpus", Kind.GAUGE),
        Column("memory_total_bytes", Kind.GAUGE),
        Column("memory_available_bytes", Kind.GAUGE),
        Column("dirty_bytes", Kind.GAUGE),
        Column("writeback_bytes", Kind.GAUGE),
        Column("psi_io_some_us", Kind.COUNTER),
        Column("psi_io_full_us", Kind.COUNTER),
        Column("psi_cpu_some_us", Kind.COUNTER),
        Column("psi_memory_some_us", Kind.COUNTER),
        Column("swap_in_bytes", Kind.COUNTER),
        Column("swap_out_bytes", Kind.COUNTER),
        Column("swap_used_bytes", Kind.GAUGE),
    ),
)
