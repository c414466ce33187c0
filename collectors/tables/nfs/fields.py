"""Figures of NFS mounts: operations and transports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Unpack

from collectors.field import Field, Shown, Thresholds, Unit, with_sources
from collectors.model import Tier
from engine.statistics.verdict import Better

OPERATIONS = "nfs"
TRANSPORTS = "nfs_transports"


def _op(id_: str, title: str, unit: Unit, help_: str, **shown: Unpack[Shown]) -> Field:
    return Field(id_, OPERATIONS, title, unit, help_, **shown)


def _xprt(id_: str, title: str, unit: Unit, help_: str, **shown: Unpack[Shown]) -> Field:
    return Field(id_, TRANSPORTS, title, unit, help_, **shown)


def _queue(id_: str, title: str, help_: str, **shown: Unpack[Shown]) -> Field:
    return _xprt(id_, title, Unit.COUNT, help_, **({"better": Better.LOWER} | shown))


_TRACEPOINT = "tracepoint sunrpc:rpc_stats_latency"
_PARTS = (
    ("queue", "Queue", "the time until the request was sent"),
    ("rtt", "RTT", "the time from the request sent to the reply"),
    ("execute", "Exec", "the whole time of an operation"),
)


def _latencies(make: Callable[..., Field], whose: str) -> Iterator[Field]:
    """Fields of the times of single operations."""
    yield make(
        "timed_per_s",
        "timed/s",
        Unit.PER_SECOND,
        f"Operations {whose} timed one by one per second.",
        tier=Tier.EXACT,
        source=_TRACEPOINT,
        better=Better.NEITHER,
    )
    for part, title, what in _PARTS:
        texts = {
            "p50": f"Median of {what}, within 4 %.",
            "p99": f"99th percentile of {what}, within 4 %; from 100 operations on.",
            "max": f"Largest of {what}.",
        }
        for which, help_ in texts.items():
            yield make(
                f"{part}_{which}_ms",
                f"{title} {which}",
                Unit.MILLISECONDS,
                help_,
                tier=Tier.EXACT,
                source=_TRACEPOINT,
            )


OPERATION_FIELDS: tuple[Field, ...] = (
    _op("iops", "op/s", Unit.PER_SECOND, "Operations that ended per second; of a mount: of all kinds."),
    _op("bytes_per_s", "B/s", Unit.BYTES_PER_SECOND, "Bytes sent and received per second, with RPC headers."),
    _op("sent_bytes_per_s", "sent B/s", Unit.BYTES_PER_SECOND, "Bytes sent per second, with RPC headers."),
    _op("received_bytes_per_s", "recv B/s", Unit.BYTES_PER_SECOND, "Bytes received per second, with RPC headers."),
    _op(
        "bytes_per_io",
        "size",
        Unit.BYTES,
        "Mean bytes sent and received per operation, with RPC headers.",
        better=Better.NEITHER,
    ),
    _op(
        "queue_ms",
        "Queue",
        Unit.MILLISECONDS,
        "Time in the client until the request was sent: session slots, transport slots, the queue of the connection.",
        hot=Thresholds(10, 50),
    ),
    _op(
        "rtt_ms",
        "RTT",
        Unit.MILLISECONDS,
        "Time from the request sent to the reply: network and server.",
        hot=Thresholds(20, 50),
    ),
    _op(
        "execute_ms",
        "Execute",
        Unit.MILLISECONDS,
        "Whole time of an operation: queue, RTT, and what the client did besides.",
        hot=Thresholds(20, 50),
    ),
    _op(
        "in_flight",
        "inflight",
        Unit.COUNT,
        "Mean number of outstanding operations: execute time of those that ended, over the interval (Little's law).",
        better=Better.NEITHER,
    ),
    _op(
        "retransmissions_per_s",
        "retr/s",
        Unit.PER_SECOND,
        "Requests sent again per second.",
        hot=Thresholds(0.1, 10),
        better=Better.LOWER,
    ),
    _op(
        "retransmission_pct",
        "retr",
        Unit.PERCENT,
        "Requests sent again, of the operations.",
        hot=Thresholds(0.1, 1),
        better=Better.LOWER,
    ),
    _op(
        "timeouts_per_s",
        "tmo/s",
        Unit.PER_SECOND,
        "Major timeouts per second: the server did not answer within timeo and retrans.",
        hot=Thresholds(0.1, 1),
        better=Better.LOWER,
    ),
    _op(
        "errors_per_s",
        "err/s",
        Unit.PER_SECOND,
        "Operations per second that ended with an error, also harmless ones: LOOKUP of a name that is not there.",
        better=Better.LOWER,
    ),
    _op(
        "transports",
        "conn",
        Unit.COUNT,
        "Transports of the mount (nconnect).",
        counts=True,
        better=Better.NEITHER,
    ),
    _op(
        "imbalance",
        "imbal",
        Unit.COUNT,
        "Sends of the busiest transport over the mean of all: 1 is even, the number of transports is all on one.",
        hot=Thresholds(1.5, 2.5),
        better=Better.LOWER,
    ),
    _op(
        "application_read_bytes_per_s",
        "app rB/s",
        Unit.BYTES_PER_SECOND,
        "Bytes per second that programs read, buffered and direct; less came from the server if they were cached.",
    ),
    _op(
        "application_write_bytes_per_s",
        "app wB/s",
        Unit.BYTES_PER_SECOND,
        "Bytes per second that programs wrote, buffered and direct.",
    ),
    _op(
        "server_read_bytes_per_s",
        "srv rB/s",
        Unit.BYTES_PER_SECOND,
        "Bytes of files per second read from the server.",
    ),
    _op(
        "server_write_bytes_per_s",
        "srv wB/s",
        Unit.BYTES_PER_SECOND,
        "Bytes of files per second written to the server.",
    ),
    _op(
        "direct_pct",
        "direct",
        Unit.PERCENT,
        "Bytes of programs by direct I/O, of all.",
        better=Better.NEITHER,
    ),
    *_latencies(_op, "of the mount"),
)
TRANSPORT_FIELDS: tuple[Field, ...] = (
    _xprt("sends_per_s", "send/s", Unit.PER_SECOND, "Requests sent per second, with those sent again."),
    _xprt("receives_per_s", "recv/s", Unit.PER_SECOND, "Replies received per second."),
    _xprt("share_pct", "share", Unit.PERCENT, "Sends, of those of all transports of the mount.", better=Better.NEITHER),
    _queue(
        "balance",
        "x mean",
        "Sends over the mean of the mount's transports: 1 is even.",
        hot=Thresholds(1.5, 2.5),
        better=Better.NEITHER,
    ),
    _queue(
        "in_flight",
        "inflight",
        "Mean number of requests without a reply at a send; requests lost with a connection count on.",
        better=Better.NEITHER,
    ),
    _queue("sending", "sending", "Mean length of the queue of requests to be sent, at a send.", hot=Thresholds(1, 8)),
    _queue(
        "pending", "pending", "Mean number of requests that wait for their reply, at a send.", better=Better.NEITHER
    ),
    _queue(
        "backlog", "backlog", "Mean number of requests that wait for a free slot, at a send.", hot=Thresholds(0.1, 1)
    ),
    _queue("slots_now", "slots", "Slots allocated now (num_reqs); 2 at least.", counts=True, better=Better.NEITHER),
    _queue(
        "slots_limit",
        "max slots",
        "Slots allowed (sunrpc.tcp_max_slot_table_entries and alike).",
        counts=True,
        better=Better.NEITHER,
    ),
    _queue("slots_peak", "most slots", "Most slots ever allocated.", counts=True, better=Better.NEITHER),
    _queue("sending_now", "sending now", "Requests in the queue to be sent, at the end of the interval.", counts=True),
    _queue(
        "pending_now",
        "pending now",
        "Requests that wait for their reply, at the end of the interval.",
        counts=True,
        better=Better.NEITHER,
    ),
    _queue("backlog_now", "backlog now", "Requests that wait for a slot, at the end of the interval.", counts=True),
    _queue("binding_now", "binding now", "Requests that wait for the port of the server (rpcbind).", counts=True),
    _queue(
        "online",
        "online",
        "1 while connected and not set offline; an idle transport disconnects after 5 minutes.",
        counts=True,
        better=Better.NEITHER,
    ),
    _xprt(
        "connects_per_s",
        "conn/s",
        Unit.PER_SECOND,
        "Connections made per second: more than 0 under load is a connection that breaks.",
        hot=Thresholds(0.1, 1),
        better=Better.LOWER,
    ),
    _xprt(
        "bad_xids_per_s",
        "bad xid/s",
        Unit.PER_SECOND,
        "Replies per second to no known request, most of them to requests that were sent twice.",
        hot=Thresholds(0.1, 1),
        better=Better.LOWER,
    ),
    _queue("idle_s", "idle s", "Seconds since the last request.", counts=True, better=Better.NEITHER),
    _xprt("rdma_bytes_per_s", "rdma B/s", Unit.BYTES_PER_SECOND, "Bytes moved by RDMA chunks per second."),
    _xprt(
        "rdma_waits_per_s",
        "rdma wait/s",
        Unit.PER_SECOND,
        "Waits per second for a send context, or for memory to be invalidated.",
        better=Better.LOWER,
    ),
    _xprt(
        "rdma_failures_per_s",
        "rdma fail/s",
        Unit.PER_SECOND,
        "Requests that could not be marshalled, and bad replies, per second.",
        hot=Thresholds(0.1, 1),
        better=Better.LOWER,
    ),
    *_latencies(_xprt, "of the transport"),
)
_STATS = "/proc/self/mountstats"
_INFO = "/sys/kernel/sunrpc/xprt-switches/*/*/xprt_info"
_SOURCES = {
    f"{_STATS}: xprt": ("transports", "imbalance"),
    f"{_STATS}: bytes": (
        "application_read_bytes_per_s",
        "application_write_bytes_per_s",
        "server_read_bytes_per_s",
        "server_write_bytes_per_s",
        "direct_pct",
    ),
}
_SYSFS = {
    _INFO: ("slots_now", "slots_limit", "sending_now", "pending_now", "backlog_now", "binding_now"),
    "/sys/kernel/sunrpc/xprt-switches/*/*/xprt_state": ("online",),
}
OPERATION_FIELDS = with_sources(OPERATION_FIELDS, _SOURCES, f"{_STATS}: per-op statistics")
TRANSPORT_FIELDS = with_sources(TRANSPORT_FIELDS, _SYSFS, f"{_STATS}: xprt")
