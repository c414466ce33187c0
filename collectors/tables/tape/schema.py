"""The raw table of tape drives."""

from __future__ import annotations

from collectors.model import Column, Kind, Schema

TAPE = Schema(
    "tape",
    (
        Column("reads", Kind.COUNTER),
        Column("writes", Kind.COUNTER),
        Column("others", Kind.COUNTER),
        Column("read_bytes", Kind.COUNTER),
        Column("write_bytes", Kind.COUNTER),
        Column("read_ns", Kind.COUNTER),
        Column("write_ns", Kind.COUNTER),
        Column("io_ns", Kind.COUNTER),
        Column("residuals", Kind.COUNTER),
        Column("in_flight_now", Kind.GAUGE),
    ),
)
"""One row per tape drive, from its `stats` (Documentation/scsi/st.rst). `io_ns` is the time of all commands, also of
those that neither read nor write; a command's time is added when it ends."""
