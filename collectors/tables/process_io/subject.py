"""I/O of processes on each device, from exact time."""

from __future__ import annotations

from functools import partial

from collectors.field import Field, Unit
from collectors.model import FrameTable, Rows, Table, Tier, Topology
from collectors.subject import Averages, Interval, Report, Subject, any_above, device_identity
from collectors.tables.process_io.schema import PROCESS_IO, PROCESS_LEFT, TABLE, device_name, parts_of
from engine.statistics.verdict import Better
from engine.text import safe_text

_SOURCE = "tracepoints block_rq_issue and block_rq_complete, by the process that submitted the I/O"


_field = partial(Field, table=TABLE, tier=Tier.EXACT, source=_SOURCE)
_per_s = partial(_field, unit=Unit.PER_SECOND)
_bytes_per_s = partial(_field, unit=Unit.BYTES_PER_SECOND)

FIELDS = (
    _per_s(
        "iops",
        "IOPS",
        "Reads and writes it submitted to this device; buffered writes are the kernel's: writeback (kworker).",
        sums="reads writes",
    ),
    _bytes_per_s("bytes_per_s", "B/s", "Bytes read and written per second.", sums="read_bytes write_bytes"),
    _field(
        "await_ms",
        "await",
        "Mean queue plus service time of its I/Os.",
        Unit.MILLISECONDS,
        sums="latency_ns",
        per="iops",
        factor=1e-6,
    ),
    _field("p99_ms", "p99", "99th percentile of that, within 13 %; from 100 I/Os on.", Unit.MILLISECONDS, percent=99.0),
    _field(
        "share_pct",
        "share",
        "Its part of the time of all I/Os of the device, which is its part of those in flight.",
        Unit.PERCENT,
        better=Better.NEITHER,
    ),
    _field(
        "in_flight",
        "in fl",
        "Mean number of its I/Os in flight.",
        Unit.COUNT,
        better=Better.NEITHER,
        sums="latency_ns",
        factor=1e-9,
    ),
    _per_s("reads_per_s", "r/s", "Reads per second.", sums="reads"),
    _per_s("writes_per_s", "w/s", "Writes per second.", sums="writes"),
    _bytes_per_s("read_bytes_per_s", "rB/s", "Bytes read per second.", sums="read_bytes"),
    _bytes_per_s("write_bytes_per_s", "wB/s", "Bytes written per second.", sums="write_bytes"),
    _field("pid", "PID", "Process id; none for workers of the kernel.", Unit.COUNT, digits=7, since_start=True),
    _field("cgroup", "cgroup", "Number of its control group (cgroup v2).", Unit.COUNT, digits=9, since_start=True),
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
    fields=FIELDS,
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
    columns=tuple(field.id for field in FIELDS if field.id != "cgroup"),
    active=any_above("iops"),
    labels=_labels,
    facts=_facts,
    identity=_identity,
)
