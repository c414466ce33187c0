"""The raw table of the hosts of a fleet."""

from __future__ import annotations

from collectors.model import Column, Kind, Schema

FLEET = Schema(
    "fleet",
    (
        Column("sampled_ns", Kind.COUNTER),
        Column("disks", Kind.GAUGE),
        Column("reads", Kind.COUNTER),
        Column("writes", Kind.COUNTER),
        Column("read_bytes", Kind.COUNTER),
        Column("write_bytes", Kind.COUNTER),
        Column("read_ms", Kind.COUNTER),
        Column("write_ms", Kind.COUNTER),
        Column("in_flight_now", Kind.GAUGE),
        Column("load_ios", Kind.COUNTER),
        Column("load_bytes", Kind.COUNTER),
        Column("load_latency_ns", Kind.COUNTER),
        Column("agent_cpu_ns", Kind.COUNTER),
        Column("late_ns", Kind.GAUGE),
        Column("clock_bound_ns", Kind.GAUGE),
        Column("round_trip_ns", Kind.GAUGE),
        Column("clock_ahead_ns", Kind.GAUGE),
        Column("clock_behind_ns", Kind.GAUGE),
        Column("state", Kind.GAUGE),
        Column("sent_bytes", Kind.COUNTER),
    ),
)
"""One row per host, by its name in the node set. `sampled_ns` is its CLOCK_MONOTONIC; the counters are sums over its
disks that are not built on others, and over the targets of its load. The columns from `clock_bound_ns` on are the
controller's: the clock is the wall clock of the host against that of the controller, `state` the position in STATES,
`sent_bytes` what its agent sent."""

SERVICE = "fleet_service"
"""Histograms of the service times of all disks of each host, exact tier only."""
SERVICE_SERIES = ("read", "write")

LINK = ("clock_bound_ns", "round_trip_ns", "clock_ahead_ns", "clock_behind_ns", "state", "sent_bytes")
"""Columns that the controller fills in."""

STATES = ("waiting", "connecting", "live", "slow", "late", "clock", "lost", "failed")
"""State of a host by its number in the column `state`."""
