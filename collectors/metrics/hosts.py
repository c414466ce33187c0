"""The host: node_exporter's names for pressure and dirty memory, its tape drives, and lunscope itself on it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from collectors.metrics.family import (
    ColumnFamily,
    MetricPart,
    MetricPoint,
    Values,
    counter,
    first_of_each,
    gauge,
    labels,
    name_labels,
    of_columns,
)
from collectors.metrics.view import MetricLevel, MetricView
from collectors.tables.block.schema import TRACER
from collectors.tables.host.schema import HOST
from collectors.tables.tape.schema import TAPE
from engine.version import version

_US = 1_000_000
_NS = 1_000_000_000


def _pressure(name: str, help_: str, column: str) -> ColumnFamily:
    return ColumnFamily(counter(f"node_pressure_{name}_seconds_total", help_), (MetricPart(column),), per=_US)


_HOST = (
    _pressure("io_waiting", "Total time in seconds that processes have waited due to IO congestion", "psi_io_some_us"),
    _pressure(
        "io_stalled", "Total time in seconds no process could make progress due to IO congestion", "psi_io_full_us"
    ),
    _pressure("cpu_waiting", "Total time in seconds that processes have waited for CPU time", "psi_cpu_some_us"),
    _pressure("memory_waiting", "Total time in seconds that processes have waited for memory", "psi_memory_some_us"),
    ColumnFamily(
        gauge("node_memory_Dirty_bytes", "Memory information field Dirty_bytes."), (MetricPart("dirty_bytes"),)
    ),
    ColumnFamily(
        gauge("node_memory_Writeback_bytes", "Memory information field Writeback_bytes."),
        (MetricPart("writeback_bytes"),),
    ),
    ColumnFamily(
        counter("lunscope_host_cpu_seconds_total", "CPU time of all processors by mode.", "mode"),
        tuple(
            MetricPart(f"cpu_{mode}_us", f'mode="{mode}"')
            for mode in ("user", "system", "idle", "iowait", "irq", "steal")
        ),
        per=_US,
    ),
)


def _tape(name: str, help_: str, column: str, per: int = 1) -> ColumnFamily:
    return ColumnFamily(counter(f"node_tape_{name}_total", help_, "device"), (MetricPart(column),), per=per)


_TAPES = (
    _tape("reads_completed", "The number of read requests issued to the tape drive.", "reads"),
    _tape("read_bytes", "The number of bytes read from the tape drive.", "read_bytes"),
    _tape("read_time_seconds", "The amount of time spent waiting for read requests to complete.", "read_ns", _NS),
    _tape("writes_completed", "The number of write requests issued to the tape drive.", "writes"),
    _tape("written_bytes", "The number of bytes written to the tape drive.", "write_bytes"),
    _tape("write_time_seconds", "The amount of time spent waiting for write requests to complete.", "write_ns", _NS),
    _tape(
        "io_time_seconds",
        "The amount of time spent waiting for all I/O to complete (including read and write). This includes tape "
        "movement commands such as seeking between file or set marks and implicit tape movement such as when rewind "
        "on close tape devices are used.",
        "io_ns",
        _NS,
    ),
    _tape(
        "io_others",
        "The number of I/Os issued to the tape drive other than read or write commands. The time taken to complete "
        "these commands uses the following calculation "
        "io_time_seconds_total-read_time_seconds_total-write_time_seconds_total",
        "others",
    ),
    _tape(
        "residual",
        "The number of times during a read or write we found the residual amount to be non-zero. This should mean "
        "that a program is issuing a read larger thean the block size on tape. For write not all data made it to "
        "tape.",
        "residuals",
    ),
    ColumnFamily(
        gauge("node_tape_io_now", "The number of I/Os currently outstanding to this device.", "device"),
        (MetricPart("in_flight_now"),),
        below=1 << 31,
    ),
)

_INFO = gauge(
    "lunscope_info", "Version, and how latency is measured: exact, sampled or kernel counters.", "version", "tier"
)
_TIME = gauge("lunscope_last_sample_timestamp_seconds", "When the counters were read.")
_CPU = counter("lunscope_sampling_cpu_seconds_total", "CPU time of sampling.")
_LOSSES = ("table_full", "unseen", "stale", "untracked_devices", "series_without_histogram", "recursion_misses")
_LOST = ColumnFamily(
    counter("lunscope_exact_losses_total", "What exact time missed, by reason.", "reason"),
    tuple(MetricPart(reason, f'reason="{reason}"') for reason in _LOSSES),
)


def _host(view: MetricView) -> Iterator[MetricPoint]:
    table = view.table(HOST.name)
    return of_columns(_HOST, table, [""] * (0 if table is None else len(table.rows)))


def _tapes(view: MetricView) -> Iterator[MetricPoint]:
    table = view.table(TAPE.name)
    if table is not None:
        rendered = name_labels(table.rows, "device")
        at = first_of_each(rendered)
        yield from of_columns(_TAPES, table, [rendered[row] for row in at.tolist()], at)


def _itself(view: MetricView) -> Iterator[MetricPoint]:
    tier = view.sample.topology.host.tier.name.lower()
    yield MetricPoint(_INFO, (Values([labels(version=version(), tier=tier)], [1]),))
    yield MetricPoint(_TIME, (Values([""], [view.sample.time_ns / 1e9]),))
    yield MetricPoint(_CPU, (Values([""], [view.cpu_ns / 1e9]),))
    yield from of_columns((_LOST,), view.table(TRACER.name), [""], np.zeros(1, np.intp))


HOST_LEVEL = MetricLevel(
    "hosts", "pressure, dirty memory and CPU time of the host", tuple(one.family for one in _HOST), _host
)
TAPE_LEVEL = MetricLevel("tapes", "counters of tape drives", tuple(one.family for one in _TAPES), _tapes)
ITSELF_LEVEL = MetricLevel("itself", "version, tier, cost and losses", (_INFO, _TIME, _CPU, _LOST.family), _itself)
