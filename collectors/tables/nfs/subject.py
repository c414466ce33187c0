"""NFS mounts by operation, and their transports."""

from __future__ import annotations

from collections.abc import Iterable

from collectors.derive.counter_deltas import Values
from collectors.field import Field
from collectors.model import Frame, FrameTable, Rows, Table, Topology
from collectors.sampling.reading import Collector
from collectors.subject import AddedSums, Interval, Report, SampledHost, Subject, any_above
from collectors.tables.nfs.fields import OPERATION_FIELDS, OPERATIONS, TRANSPORT_FIELDS, TRANSPORTS
from collectors.tables.nfs.figures import (
    operation_figures,
    operation_sums,
    transport_figures,
    transport_sums,
    transports_of_mounts,
)
from collectors.tables.nfs.latency_figures import (
    Belongs,
    TimedAverages,
    latency_figures,
    rows_of_operation,
    rows_of_transport,
    timed_interval,
)
from collectors.tables.nfs.schema import NFS_LATENCY, NFS_OPERATION, NFS_SLOW, NFS_TRANSPORT, TRANSPORT_GAUGES, nfs_key
from engine.hostfs.kernel_files import unescape_octal
from engine.text import safe_text


def operation_tables(interval: Interval, current: Table) -> dict[str, FrameTable]:
    """All fields of mounts and operations over one interval."""
    figures = operation_figures(operation_sums(interval.before(NFS_OPERATION.name), current, interval.elapsed_s))
    transports = interval.now(NFS_TRANSPORT.name)
    if transports is not None:
        found = transport_figures(transport_sums(interval.before(NFS_TRANSPORT.name), transports, interval.elapsed_s))
        figures |= transports_of_mounts(current.rows, transports.rows, found)
    figures |= _latencies(interval, current.rows, rows_of_operation)
    return {OPERATIONS: FrameTable(current.rows, figures)}


def transport_tables(interval: Interval, current: Table) -> dict[str, FrameTable]:
    """All fields of transports over one interval."""
    sums = transport_sums(interval.before(NFS_TRANSPORT.name), current, interval.elapsed_s)
    figures = transport_figures(sums) | _latencies(interval, current.rows, rows_of_transport)
    return {TRANSPORTS: FrameTable(current.rows, figures)}


def _latencies(interval: Interval, rows: Rows, belongs: Belongs) -> dict[str, Values]:
    name = NFS_LATENCY.name
    timed = timed_interval(interval.now(name), interval.histograms(name), interval.elapsed_s)
    return latency_figures(rows, timed, belongs)


def _readers(host: SampledHost) -> tuple[Collector, ...]:
    from collectors.tables.nfs.latency import NfsLatency  # noqa: PLC0415 (see collectors.subject.Readers)
    from collectors.tables.nfs.reader import NfsCollector  # noqa: PLC0415

    latency = None if host.open_nfs is None else NfsLatency(host.open_nfs)
    return (NfsCollector(host.procfs, host.sysfs, latency),)


def _remarks(frame: Frame) -> Iterable[str]:
    from collectors.tables.nfs.verdict import nfs_remarks  # noqa: PLC0415 (only reports need it)

    return nfs_remarks(frame)


def _facts(key: str, topology: Topology) -> dict[str, object]:  # noqa: ARG001 - as all facts
    parts = nfs_key(key)
    return {
        "mount": safe_text(unescape_octal(parts.point)),
        "export": safe_text(unescape_octal(parts.device)),
        "server": safe_text(parts.address),
        "version": safe_text(parts.version),
        "protocol": safe_text(parts.protocol),
    }


def _operation_facts(key: str, topology: Topology) -> dict[str, object]:
    return _facts(key, topology) | {"operation": safe_text(nfs_key(key).part)}


def _transport_facts(key: str, topology: Topology) -> dict[str, object]:
    return _facts(key, topology) | {"transport": safe_text(nfs_key(key).part)}


def _identity(key: str, topology: Topology) -> str:  # noqa: ARG001 - as all identities
    return safe_text(key)


def _ordered(fields: tuple[Field, ...], first: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns of a report, then all others."""
    return tuple(dict.fromkeys((*first, *(field.id for field in fields))))


_COLUMNS = ("iops", "bytes_per_s", "queue_ms", "rtt_ms", "execute_ms", "in_flight", "retransmissions_per_s",
            "timeouts_per_s", "errors_per_s", "imbalance")  # fmt: skip
_TRANSPORT_COLUMNS = ("sends_per_s", "receives_per_s", "share_pct", "balance", "in_flight", "sending", "pending",
                      "backlog", "slots_now", "connects_per_s")  # fmt: skip
_DISTRIBUTION = ("iops", "queue_p50_ms", "queue_p99_ms", "queue_max_ms", "rtt_p50_ms", "rtt_p99_ms", "rtt_max_ms",
                 "execute_p50_ms", "execute_p99_ms", "execute_max_ms")  # fmt: skip

NFS_MOUNTS = Subject(
    table=OPERATIONS,
    title="nfs mount",
    one="NFS mount or operation",
    many="NFS mounts and operations",
    fields=OPERATION_FIELDS,
    raw=(NFS_OPERATION,),
    exact_raw=(NFS_LATENCY, NFS_SLOW),
    readers=_readers,
    derive=operation_tables,
    report=Report(
        option="-N",
        help="NFS mounts by operation: queue, RTT and execute time, retransmissions, errors.",
        columns=_COLUMNS,
        split_columns=(
            "iops",
            "sent_bytes_per_s",
            "received_bytes_per_s",
            "application_read_bytes_per_s",
            "application_write_bytes_per_s",
            "server_read_bytes_per_s",
            "server_write_bytes_per_s",
            "direct_pct",
        ),
        distribution_columns=_DISTRIBUTION,
        averages=lambda: TimedAverages(
            AddedSums(OPERATIONS, NFS_OPERATION, operation_sums, operation_figures, latest=()),
            OPERATIONS,
            rows_of_operation,
        ),
        remarks=_remarks,
    ),
    columns=_ordered(OPERATION_FIELDS, (*_COLUMNS[:6], "rtt_p99_ms", "execute_p99_ms", *_COLUMNS[6:])),
    active=any_above("iops", "in_flight", "timeouts_per_s", "timed_per_s"),
    charts=(
        "iops",
        "bytes_per_s",
        "queue_ms",
        "rtt_ms",
        "execute_ms",
        "in_flight",
        "retransmissions_per_s",
        "errors_per_s",
        "imbalance",
    ),
    facts=_operation_facts,
    identity=_identity,
)
"""The row of a mount is the sum of its operations. Mounts of one file system on several points have the same counts."""

NFS_TRANSPORTS = Subject(
    table=TRANSPORTS,
    title="nfs transport",
    one="transport of an NFS mount",
    many="transports of NFS mounts",
    fields=TRANSPORT_FIELDS,
    raw=(NFS_TRANSPORT,),
    exact_raw=(NFS_LATENCY,),
    derive=transport_tables,
    report=Report(
        option="-X",
        help="Transports of NFS mounts (nconnect): sends, balance, queues, slots.",
        columns=_TRANSPORT_COLUMNS,
        split_columns=_TRANSPORT_COLUMNS,
        distribution_columns=("sends_per_s", *_DISTRIBUTION[1:]),
        averages=lambda: TimedAverages(
            AddedSums(
                TRANSPORTS,
                NFS_TRANSPORT,
                transport_sums,
                transport_figures,
                latest=(*TRANSPORT_GAUGES, "mount_transports"),
            ),
            TRANSPORTS,
            rows_of_transport,
        ),
    ),
    columns=_ordered(TRANSPORT_FIELDS, _TRANSPORT_COLUMNS),
    active=any_above("sends_per_s", "receives_per_s", "pending_now", "backlog_now"),
    charts=("sends_per_s", "in_flight", "sending", "pending", "backlog", "share_pct", "slots_now"),
    facts=_transport_facts,
    identity=_identity,
)
"""Mounts of one server share transports, so the same ones may be in several mounts: they must not be added up."""
