"""NFS mounts: node_exporter's names of its collector mountstats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from collectors.metrics.family import (
    ColumnFamily,
    MetricPart,
    MetricPoint,
    Positions,
    counter,
    first_of_each,
    gauge,
    labels,
    of_columns,
)
from collectors.metrics.view import MetricLevel, MetricView
from collectors.model import Rows
from collectors.tables.nfs.schema import NFS_OPERATION, NFS_TRANSPORT, NfsKey, nfs_key
from engine.hostfs.kernel_files import unescape_octal

_PREFIX = "node_mountstats_nfs_"
_MOUNT = ("export", "protocol", "mountaddr")
_MS = 1000


def _mount(name: str, help_: str, column: str) -> ColumnFamily:
    return ColumnFamily(counter(f"{_PREFIX}{name}_bytes_total", help_, *_MOUNT), (MetricPart(column),))


def _operation(name: str, help_: str, column: str, per: int = 1) -> ColumnFamily:
    family = counter(f"{_PREFIX}operations_{name}_total", help_, *_MOUNT, "operation")
    return ColumnFamily(family, (MetricPart(column),), per=per)


def _transport(name: str, help_: str, column: str) -> ColumnFamily:
    family = counter(f"{_PREFIX}transport_{name}_total", help_, *_MOUNT, "transport")
    return ColumnFamily(family, (MetricPart(column),))


def _state(name: str, help_: str, column: str) -> ColumnFamily:
    return ColumnFamily(gauge(f"{_PREFIX}transport_{name}", help_, *_MOUNT, "transport"), (MetricPart(column),))


_MOUNTS = (
    _mount("read", "Number of bytes read using the read() syscall.", "buffered_read_bytes"),
    _mount("write", "Number of bytes written using the write() syscall.", "buffered_write_bytes"),
    _mount("direct_read", "Number of bytes read using the read() syscall in O_DIRECT mode.", "direct_read_bytes"),
    _mount("direct_write", "Number of bytes written using the write() syscall in O_DIRECT mode.", "direct_write_bytes"),
    _mount("total_read", "Number of bytes read from the NFS server, in total.", "server_read_bytes"),
    _mount("total_write", "Number of bytes written to the NFS server, in total.", "server_write_bytes"),
)
_OPERATIONS = (
    _operation("requests", "Number of requests performed for a given operation.", "operations"),
    _operation(
        "transmissions",
        "Number of times an actual RPC request has been transmitted for a given operation.",
        "transmissions",
    ),
    _operation(
        "major_timeouts", "Number of times a request has had a major timeout for a given operation.", "timeouts"
    ),
    _operation(
        "sent_bytes",
        "Number of bytes sent for a given operation, including RPC headers and payload.",
        "sent_bytes",
    ),
    _operation(
        "received_bytes",
        "Number of bytes received for a given operation, including RPC headers and payload.",
        "received_bytes",
    ),
    _operation(
        "queue_time_seconds",
        "Duration all requests spent queued for transmission for a given operation before they were sent, in seconds.",
        "queue_ms",
        _MS,
    ),
    _operation(
        "response_time_seconds",
        "Duration all requests took to get a reply back after a request for a given operation was transmitted, in "
        "seconds.",
        "rtt_ms",
        _MS,
    ),
    _operation(
        "request_time_seconds",
        "Duration all requests took from when a request was enqueued to when it was completely handled for a given "
        "operation, in seconds.",
        "execute_ms",
        _MS,
    ),
    _operation("errors", "Number of errors for a given operation", "errors"),
)
_TRANSPORTS = (
    _transport("connect", "Number of times the client has made a TCP connection to the NFS server.", "connects"),
    _state("idle_time_seconds", "Duration since the NFS mount last saw any RPC traffic, in seconds.", "idle_s"),
    _transport("sends", "Number of RPC requests for this mount sent to the NFS server.", "sends"),
    _transport("receives", "Number of RPC responses for this mount received from the NFS server.", "receives"),
    _transport(
        "bad_transaction_ids",
        "Number of times the NFS server sent a response with a transaction ID unknown to this client.",
        "bad_xids",
    ),
    _transport("backlog_queue", "Total number of items added to the RPC backlog queue.", "backlog_sum"),
    _state("maximum_rpc_slots", "Maximum number of simultaneously active RPC requests ever used.", "slots_peak"),
    _transport("sending_queue", "Total number of items added to the RPC transmission sending queue.", "sending_sum"),
    _transport("pending_queue", "Total number of items added to the RPC transmission pending queue.", "pending_sum"),
)

Rendered = tuple[tuple[str, ...], Positions]
"""Labels, and the rows that have them."""


def _labels_of(key: NfsKey, **further: str) -> str:
    address = "" if key.address == "-" else key.address
    return labels(
        export=unescape_octal(key.device), protocol=key.protocol.removesuffix("6"), mountaddr=address, **further
    )


def _rendered(rows: Rows, wanted: Callable[[NfsKey], bool], of_key: Callable[[NfsKey], str]) -> Rendered:
    """Labels of wanted rows; a file system that is mounted on several points is one."""
    keys = [(row, nfs_key(key)) for row, key in enumerate(rows.keys)]
    chosen = [(row, of_key(key)) for row, key in keys if wanted(key)]
    at = first_of_each([text for _, text in chosen]).tolist()
    return tuple(chosen[each][1] for each in at), np.array([chosen[each][0] for each in at], np.intp)


@lru_cache(maxsize=4)
def _of_operations(rows: Rows) -> tuple[Rendered, Rendered]:
    """Those of mounts, and of their operations."""
    mounts = _rendered(rows, lambda key: key.is_mount, _labels_of)
    operations = _rendered(rows, lambda key: not key.is_mount, lambda key: _labels_of(key, operation=key.part))
    return mounts, operations


@lru_cache(maxsize=4)
def _of_transports(rows: Rows) -> Rendered:
    return _rendered(rows, lambda _: True, lambda key: _labels_of(key, transport=str(int(key.part) - 1)))


def _measure(view: MetricView) -> Iterator[MetricPoint]:
    operations, transports = view.table(NFS_OPERATION.name), view.table(NFS_TRANSPORT.name)
    if operations is not None:
        for families, (rendered, at) in zip((_MOUNTS, _OPERATIONS), _of_operations(operations.rows), strict=True):
            yield from of_columns(families, operations, rendered, at)
    if transports is not None:
        rendered, at = _of_transports(transports.rows)
        yield from of_columns(_TRANSPORTS, transports, rendered, at)


NFS_LEVEL = MetricLevel(
    "nfs",
    "operations and transports of NFS mounts",
    tuple(one.family for one in (*_MOUNTS, *_OPERATIONS, *_TRANSPORTS)),
    _measure,
    default=False,
)
"""Not by default, as in node_exporter: a mount has some hundred series."""
