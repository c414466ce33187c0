"""The raw table of processes."""

from __future__ import annotations

from collectors.model import Column, Kind, Schema

PROCESS = Schema(
    "process",
    (
        Column("pid", Kind.GAUGE),
        Column("read_bytes", Kind.GAUGE),
        Column("write_bytes", Kind.GAUGE),
        Column("cancelled_write_bytes", Kind.GAUGE),
        Column("syscalls_read", Kind.GAUGE),
        Column("syscalls_write", Kind.GAUGE),
        Column("span_us", Kind.GAUGE),
    ),
)
"""Processes with recent I/O; key "pid:start time". Processes are read less often than disks: the columns are deltas
over `span_us`, the time between their last two readings, and are repeated until the next one."""
