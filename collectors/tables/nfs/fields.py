"""Figures of NFS mounts: operations and transports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from collectors.field import Field, Thresholds, Unit
from collectors.model import Tier
from engine.statistics.verdict import Better

OPERATIONS = "nfs"
TRANSPORTS = "nfs_transports"


_STATS = "/proc/self/mountstats"
_INFO = "/sys/kernel/sunrpc/xprt-switches/*/*/xprt_info"

_op = partial(Field, table=OPERATIONS, source=f"{_STATS}: per-op statistics")
_per_s = partial(_op, unit=Unit.PER_SECOND)
_bytes_per_s = partial(_op, unit=Unit.BYTES_PER_SECOND)

_xprt = partial(Field, table=TRANSPORTS, source=f"{_STATS}: xprt")
_sends_per_s = partial(_xprt, unit=Unit.PER_SECOND)
_queue = partial(_xprt, unit=Unit.COUNT, better=Better.LOWER)
_slots = partial(_queue, source=_INFO, counts=True)


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
        f"Operations {whose} timed one by one per second.",
        Unit.PER_SECOND,
        tier=Tier.EXACT,
        source=_TRACEPOINT,
        better=Better.NEITHER,
    )
    for part, title, what in _PARTS:
        texts = (
            ("p50", 50.0, f"Median of {what}, within 4 %."),
            ("p99", 99.0, f"99th percentile of {what}, within 4 %; from 100 operations on."),
            ("max", 0.0, f"Largest of {what}."),
        )
        for which, percent, help_ in texts:
            yield make(
                f"{part}_{which}_ms",
                f"{title} {which}",
                help_,
                Unit.MILLISECONDS,
                tier=Tier.EXACT,
                source=_TRACEPOINT,
                percent=percent,
                peak=not percent,
            )


OPERATION_FIELDS: tuple[Field, ...] = (
    _per_s("iops", "op/s", "Operations that ended per second; of a mount: of all kinds.", sums="operations"),
    _bytes_per_s(
        "bytes_per_s", "B/s", "Bytes sent and received per second, with RPC headers.", sums="sent_bytes received_bytes"
    ),
    _bytes_per_s("sent_bytes_per_s", "sent B/s", "Bytes sent per second, with RPC headers.", sums="sent_bytes"),
    _bytes_per_s(
        "received_bytes_per_s", "recv B/s", "Bytes received per second, with RPC headers.", sums="received_bytes"
    ),
    _op(
        "bytes_per_io",
        "size",
        "Mean bytes sent and received per operation, with RPC headers.",
        Unit.BYTES,
        better=Better.NEITHER,
        sums="sent_bytes received_bytes",
        per="iops",
    ),
    _op(
        "queue_ms",
        "Queue",
        "Time in the client until the request was sent: session slots, transport slots, the queue of the connection.",
        Unit.MILLISECONDS,
        hot=Thresholds(10, 50),
        sums="queue_ms",
        per="iops",
    ),
    _op(
        "rtt_ms",
        "RTT",
        "Time from the request sent to the reply: network and server.",
        Unit.MILLISECONDS,
        hot=Thresholds(20, 50),
        sums="rtt_ms",
        per="iops",
    ),
    _op(
        "execute_ms",
        "Execute",
        "Whole time of an operation: queue, RTT, and what the client did besides.",
        Unit.MILLISECONDS,
        hot=Thresholds(20, 50),
        sums="execute_ms",
        per="iops",
    ),
    _op(
        "in_flight",
        "inflight",
        "Mean number of outstanding operations: execute time of those that ended, over the interval (Little's law).",
        Unit.COUNT,
        better=Better.NEITHER,
        sums="execute_ms",
        factor=1e-3,
    ),
    _per_s(
        "retransmissions_per_s",
        "retr/s",
        "Requests sent again per second.",
        hot=Thresholds(0.1, 10),
        better=Better.LOWER,
        sums="retransmissions",
    ),
    _op(
        "retransmission_pct",
        "retr",
        "Requests sent again, of the operations.",
        Unit.PERCENT,
        hot=Thresholds(0.1, 1),
        better=Better.LOWER,
    ),
    _per_s(
        "timeouts_per_s",
        "tmo/s",
        "Major timeouts per second: the server did not answer within timeo and retrans.",
        hot=Thresholds(0.1, 1),
        better=Better.LOWER,
        sums="timeouts",
    ),
    _per_s(
        "errors_per_s",
        "err/s",
        "Operations per second that ended with an error, also harmless ones: LOOKUP of a name that is not there.",
        better=Better.LOWER,
        sums="errors",
    ),
    _op(
        "transports",
        "conn",
        "Transports of the mount (nconnect).",
        Unit.COUNT,
        counts=True,
        better=Better.NEITHER,
        source=f"{_STATS}: xprt",
    ),
    _op(
        "imbalance",
        "imbal",
        "Sends of the busiest transport over the mean of all: 1 is even, the number of transports is all on one.",
        Unit.COUNT,
        hot=Thresholds(1.5, 2.5),
        better=Better.LOWER,
        source=f"{_STATS}: xprt",
    ),
    _bytes_per_s(
        "application_read_bytes_per_s",
        "app rB/s",
        "Bytes per second that programs read, buffered and direct; less came from the server if they were cached.",
        source=f"{_STATS}: bytes",
        sums="buffered_read_bytes direct_read_bytes",
    ),
    _bytes_per_s(
        "application_write_bytes_per_s",
        "app wB/s",
        "Bytes per second that programs wrote, buffered and direct.",
        source=f"{_STATS}: bytes",
        sums="buffered_write_bytes direct_write_bytes",
    ),
    _bytes_per_s(
        "server_read_bytes_per_s",
        "srv rB/s",
        "Bytes of files per second read from the server.",
        source=f"{_STATS}: bytes",
        sums="server_read_bytes",
    ),
    _bytes_per_s(
        "server_write_bytes_per_s",
        "srv wB/s",
        "Bytes of files per second written to the server.",
        source=f"{_STATS}: bytes",
        sums="server_write_bytes",
    ),
    _op(
        "direct_pct",
        "direct",
        "Bytes of programs by direct I/O, of all.",
        Unit.PERCENT,
        better=Better.NEITHER,
        source=f"{_STATS}: bytes",
    ),
    *_latencies(_op, "of the mount"),
)
TRANSPORT_FIELDS: tuple[Field, ...] = (
    _sends_per_s("sends_per_s", "send/s", "Requests sent per second, with those sent again.", sums="sends"),
    _sends_per_s("receives_per_s", "recv/s", "Replies received per second.", sums="receives"),
    _xprt("share_pct", "share", "Sends, of those of all transports of the mount.", Unit.PERCENT, better=Better.NEITHER),
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
    _slots("slots_now", "slots", "Slots allocated now (num_reqs); 2 at least.", better=Better.NEITHER),
    _slots(
        "slots_limit",
        "max slots",
        "Slots allowed (sunrpc.tcp_max_slot_table_entries and alike).",
        better=Better.NEITHER,
    ),
    _queue("slots_peak", "most slots", "Most slots ever allocated.", counts=True, better=Better.NEITHER),
    _slots("sending_now", "sending now", "Requests in the queue to be sent, at the end of the interval."),
    _slots(
        "pending_now",
        "pending now",
        "Requests that wait for their reply, at the end of the interval.",
        better=Better.NEITHER,
    ),
    _slots("backlog_now", "backlog now", "Requests that wait for a slot, at the end of the interval."),
    _slots("binding_now", "binding now", "Requests that wait for the port of the server (rpcbind)."),
    _queue(
        "online",
        "online",
        "1 while connected and not set offline; an idle transport disconnects after 5 minutes.",
        counts=True,
        better=Better.NEITHER,
        source="/sys/kernel/sunrpc/xprt-switches/*/*/xprt_state",
    ),
    _sends_per_s(
        "connects_per_s",
        "conn/s",
        "Connections made per second: more than 0 under load is a connection that breaks.",
        hot=Thresholds(0.1, 1),
        better=Better.LOWER,
        sums="connects",
    ),
    _sends_per_s(
        "bad_xids_per_s",
        "bad xid/s",
        "Replies per second to no known request, most of them to requests that were sent twice.",
        hot=Thresholds(0.1, 1),
        better=Better.LOWER,
        sums="bad_xids",
    ),
    _queue("idle_s", "idle s", "Seconds since the last request.", counts=True, better=Better.NEITHER),
    _xprt(
        "rdma_bytes_per_s",
        "rdma B/s",
        "Bytes moved by RDMA chunks per second.",
        Unit.BYTES_PER_SECOND,
        sums="rdma_sent_bytes rdma_received_bytes",
    ),
    _sends_per_s(
        "rdma_waits_per_s",
        "rdma wait/s",
        "Waits per second for a send context, or for memory to be invalidated.",
        better=Better.LOWER,
        sums="rdma_empty_sendctx rdma_reply_waits",
    ),
    _sends_per_s(
        "rdma_failures_per_s",
        "rdma fail/s",
        "Requests that could not be marshalled, and bad replies, per second.",
        hot=Thresholds(0.1, 1),
        better=Better.LOWER,
        sums="rdma_failed_marshal rdma_bad_replies",
    ),
    *_latencies(_xprt, "of the transport"),
)
