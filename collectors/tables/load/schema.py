"""Raw tables of the load that lunscope drives."""

from __future__ import annotations

from collectors.model import Column, Kind, Schema

LOAD = Schema(
    "load",
    (
        Column("read_ios", Kind.COUNTER),
        Column("read_bytes", Kind.COUNTER),
        Column("read_latency_ns", Kind.COUNTER),
        Column("read_peak_ns", Kind.PEAK),
        Column("write_ios", Kind.COUNTER),
        Column("write_bytes", Kind.COUNTER),
        Column("write_latency_ns", Kind.COUNTER),
        Column("write_peak_ns", Kind.PEAK),
        Column("errors", Kind.COUNTER),
        Column("in_flight_now", Kind.GAUGE),
        Column("queue_depth", Kind.GAUGE),
        Column("active", Kind.GAUGE),
        Column("failing", Kind.GAUGE),
        Column("epoch", Kind.GAUGE),
        Column("skipped", Kind.COUNTER),
        Column("read_service_ns", Kind.COUNTER),
        Column("write_service_ns", Kind.COUNTER),
        Column("outstanding_ns", Kind.GAUGE),
    ),
)
"""One row per target of the load; `active` is 1 while the target is inside the stripe width, `failing` is 1
while the engine only probes it after repeated errors. Latencies are from submit to
reap on the engine's own clock. Histograms of the same name have the series "read" and "write".
In an open loop latencies count from the moment an I/O was meant to be issued; times from submit to reap are the
`*_service_ns` columns and the histograms "load_service". `skipped` counts arrivals that found no room in time.
`outstanding_ns` is for how long the I/Os have been outstanding that are now, summed, and for how long those were that
failed or were fsyncs; with the times of completed I/Os it adds up to the I/Os outstanding, integrated over time.
Sessions of earlier versions do not have it."""

LOAD_PATH = Schema(
    "load_path",
    (
        Column("read_ios", Kind.COUNTER),
        Column("read_bytes", Kind.COUNTER),
        Column("read_latency_ns", Kind.COUNTER),
        Column("read_peak_ns", Kind.PEAK),
        Column("write_ios", Kind.COUNTER),
        Column("write_bytes", Kind.COUNTER),
        Column("write_latency_ns", Kind.COUNTER),
        Column("write_peak_ns", Kind.PEAK),
        Column("errors", Kind.COUNTER),
        Column("in_flight_now", Kind.GAUGE),
        Column("failed", Kind.GAUGE),
        Column("target", Kind.GAUGE),
    ),
)
"""One row per path of those targets of the load that have several: what went over it, by the engine's own clock, and
attempts that failed; `failed` is 1 while it is only probed, `target` the row in LOAD."""

LOAD_LOGICAL = Schema(
    "load_logical",
    LOAD_PATH.columns[:9],
)
"""One row: I/Os of the load before they were cut into parts or copied; the latency of each is that of its slowest part.
No rows while each is one part."""

SLOW_LOAD = Schema(
    "slow_load",
    tuple(
        Column(name, Kind.GAUGE)
        for name in ("target", "direction", "offset", "bytes", "issued_ns", "latency_ns", "major", "minor")
    ),
)
"""The slowest I/Os of the load since the sample before, slowest first; keys are ranks. `target` is the row in LOAD,
`direction` 0 for reads and 1 for writes, `issued_ns` CLOCK_MONOTONIC at submission, the latency until it was reaped;
`major` and `minor` are of the device that the target is or lies on."""
