"""I/O of processes on each device, from exact time."""

from __future__ import annotations

from typing import Unpack

from collectors.field import Field, Shown, Unit
from collectors.model import FrameTable, Rows, Table, Tier, Topology
from collectors.subject import Averages, Interval, Report, Subject, any_above, device_identity
from collectors.tables.process_io.schema import PROCESS_IO, PROCESS_LEFT, TABLE, device_name, parts_of
from engine.statistics.verdict import Better
from engine.text import safe_text

_SOURCE = "tracepoints block_rq_issue and block_rq_complete, by the process that submitted the I/O"


def _field(id_: str, title: str, unit: Unit, help_: str, **shown: Unpack[Shown]) -> Field:
    return Field(id_, TABLE, title, unit, help_, tier=Tier.EXACT, source=_SOURCE, **shown)


_FIELDS = (
    _field(
        "iops",
        "IOPS",
        Unit.PER_SECOND,
        "Reads and writes it submitted to this device; buffered writes are the kernel's: writeback (kworker).",
    ),
    _field("bytes_per_s", "B/s", Unit.BYTES_PER_SECOND, "Bytes read and written per second."),
    _field("await_ms", "await", Unit.MILLISECONDS, "Mean queue plus service time of its I/Os."),
    _field("p99_ms", "p99", Unit.MILLISECONDS, "99th percentile of that, within 13 %; from 100 I/Os on."),
    _field(
        "share_pct",
        "share",
        Unit.PERCENT,
        "Its part of the time of all I/Os of the device, which is its part of those in flight.",
        better=Better.NEITHER,
    ),
    _field("in_flight", "in fl", Unit.COUNT, "Mean number of its I/Os in flight.", better=Better.NEITHER),
    _field("reads_per_s", "r/s", Unit.PER_SECOND, "Reads per second."),
    _field("writes_per_s", "w/s", Unit.PER_SECOND, "Writes per second."),
    _field("read_bytes_per_s", "rB/s", Unit.BYTES_PER_SECOND, "Bytes read per second."),
    _field("write_bytes_per_s", "wB/s", Unit.BYTES_PER_SECOND, "Bytes written per second."),
    _field("pid", "PID", Unit.COUNT, "Process id; none for workers of the kernel.", digits=7, since_start=True),
    _field("cgroup", "cgroup", Unit.COUNT, "Number of its control group (cgroup v2).", digits=9, since_start=True),
)


def _derive(interval: Interval, current: Table) -> dict[str, FrameTable]:
    from collectors.tables.process_io.sums import figures, interval_sums, with_heads  # noqa: PLC0415 (see Readers)

    sums = interval_sums(interval.previous, interval.current, current)
    return {TABLE: figures(with_heads(sums, interval.current.topology.graph))}


def _averages() -> Averages:
    from collectors.tables.process_io.sums import ProcessAverages  # noqa: PLC0415 (see Readers)

    return ProcessAverages()


def _labels(rows: Rows, topology: Topology) -> tuple[str, ...]:
    pairs = zip(rows.keys, rows.names, strict=True)
    return tuple(f"{safe_text(name)} {device_name(parts_of(key)[0], topology)}" for key, name in pairs)


def _facts(key: str, topology: Topology) -> dict[str, object]:
    disk, submitter = parts_of(key)
    return {"device": device_name(disk, topology), "process": safe_text(submitter)}


def _identity(key: str, topology: Topology) -> str:
    disk, submitter = parts_of(key)
    return f"{device_identity(disk, topology)} {safe_text(submitter)}"


_COLUMNS = ("iops", "bytes_per_s", "await_ms", "p99_ms", "share_pct")
_SPLIT = ("reads_per_s", "writes_per_s", "read_bytes_per_s", "write_bytes_per_s", "await_ms", "share_pct")

PROCESS_IOS = Subject(
    table=TABLE,
    title="process",
    one="process on a device",
    many="processes on devices",
    fields=_FIELDS,
    raw=(PROCESS_IO,),
    exact_raw=(PROCESS_IO, PROCESS_LEFT),
    derive=_derive,
    report=Report(
        option="-p",
        help="Processes: what each did on each device (exact time only).",
        columns=_COLUMNS,
        split_columns=_SPLIT,
        distribution_columns=_COLUMNS,
        averages=_averages,
        unasked=False,
    ),
    columns=tuple(field.id for field in _FIELDS if field.id != "cgroup"),
    active=any_above("iops"),
    labels=_labels,
    facts=_facts,
    identity=_identity,
)
