"""The raw tables of NFS mounts, and the keys of their rows."""

from __future__ import annotations

from msgspec import Struct

from collectors.model import Column, HistogramScale, Kind, Schema

OPERATION_COUNTERS = (
    "operations",
    "transmissions",
    "timeouts",
    "sent_bytes",
    "received_bytes",
    "queue_ms",
    "rtt_ms",
    "execute_ms",
    "errors",
)
"""Counters of an operation, in the order of /proc/self/mountstats; `errors` since Linux 5.3."""
BYTE_COUNTERS = (
    "buffered_read_bytes",
    "buffered_write_bytes",
    "direct_read_bytes",
    "direct_write_bytes",
    "server_read_bytes",
    "server_write_bytes",
)
"""The first six counters of the line `bytes:`; only the row of the mount has them."""
NFS_OPERATION = Schema(
    "nfs_operation",
    tuple(Column(name, Kind.COUNTER) for name in (*OPERATION_COUNTERS, *BYTE_COUNTERS)),
)
"""A row per mount with the sums of its operations, and a row per operation that the mount has used.

Times are sums over operations that ended, in ms: `queue_ms` until the request was sent, `rtt_ms` from there to the
reply, `execute_ms` both and what the client did besides (net/sunrpc/stats.c).
"""

TRANSPORT_COUNTERS = (
    "connects",
    "sends",
    "receives",
    "bad_xids",
    "outstanding_sum",
    "backlog_sum",
    "sending_sum",
    "pending_sum",
    "rdma_sent_bytes",
    "rdma_received_bytes",
    "rdma_failed_marshal",
    "rdma_bad_replies",
    "rdma_empty_sendctx",
    "rdma_reply_waits",
)
TRANSPORT_GAUGES = (
    "idle_s",
    "slots_peak",
    "slots_now",
    "slots_limit",
    "binding_now",
    "sending_now",
    "pending_now",
    "backlog_now",
    "online",
)
NFS_TRANSPORT = Schema(
    "nfs_transport",
    (
        *(Column(name, Kind.COUNTER) for name in TRANSPORT_COUNTERS),
        *(Column(name, Kind.GAUGE) for name in TRANSPORT_GAUGES),
    ),
)
"""A row per transport of a mount (nconnect).

The columns `*_sum` grow at each send by the length of that queue then, so that their increase over that of `sends` is
its mean length (net/sunrpc/xprt.c: xprt_request_transmit). `*_now`, `slots_now`, `slots_limit` and `online` are of
/sys/kernel/sunrpc, MISSING before Linux 5.14 and where it is not certain which of its transports are of this mount.
"""

LATENCY_PARTS = ("queue", "rtt", "execute")
LATENCY_SUMS = tuple(f"{part}_ns" for part in LATENCY_PARTS)
LATENCY_PEAKS = tuple(f"{part}_max_ns" for part in LATENCY_PARTS)
NFS_LATENCY = Schema(
    "nfs_latency",
    (
        *(Column(name, Kind.INTERVAL) for name in ("calls", *LATENCY_SUMS)),
        *(Column(name, Kind.PEAK) for name in LATENCY_PEAKS),
    ),
)
"""A row per mount, operation and transport with calls since it was timed (sunrpc:rpc_stats_latency).

Mounts of one server share calls that are of none of them, as for their lease: those are in a row of each.
"""
LATENCY_SERIES = (
    *("read", "write", "other"),
    *("queue_read", "queue_write", "queue_other"),
    *("rtt_read", "rtt_write", "rtt_other"),
)
"""Columns of the histograms by the same name; those named by the kind of operation alone are of the execute time."""
LATENCY_SCALE = HistogramScale(unit_ns=1000, sub_bits=4)
"""Buckets at most 6.25 % wide; longer than 134 s counts as 134 s (engine/native/bpf/rpc.h)."""
NFS_SLOW = Schema(
    "nfs_slow",
    tuple(
        Column(name, Kind.GAUGE)
        for name in (
            "completed_ns",
            "row",
            "queue_ns",
            "rtt_ns",
            "execute_ns",
            "xid",
            "pid",
            "command_low",
            "command_high",
        )
    ),
)
"""The slowest calls since the previous sample, slowest first; keys are ranks. `completed_ns` is CLOCK_MONOTONIC, `row`
the position of mount, operation and transport in NFS_LATENCY of the same sample, the XID that of the call's packets.
Process and command are missing where a worker of the kernel ended the call, as of reads and writes."""
UNKNOWN = "-"
"""Transport of a call where the kernel does not say it, or it is not certain which of the mount's it is."""

_READS, _WRITES = ("READ", "READ_PLUS"), ("WRITE",)


def kind_of(operation: str) -> int:
    """Position of the kind of an operation in read, write, other."""
    return 0 if operation in _READS else 1 if operation in _WRITES else 2


_WHOLE = "all"


class NfsKey(Struct, frozen=True):
    r"""Parts of a row's key; `device` and `point` with the `\040` escapes of the kernel, so they hold no spaces."""

    version: str
    protocol: str
    address: str
    """Address of the server, `-` if it is not known."""
    device: str
    point: str
    part: str = _WHOLE
    """Operation, or number of the transport from 1 on; `all` for the mount."""

    @property
    def text(self) -> str:
        """The key."""
        return f"{self.mount} {self.part}"

    @property
    def mount(self) -> str:
        """What all rows of the mount begin with."""
        return f"{self.version} {self.protocol} {self.address} {self.device} {self.point}"

    @property
    def is_mount(self) -> bool:
        """Whether it is the row of the whole mount."""
        return self.part == _WHOLE


def nfs_key(key: str) -> NfsKey:
    """Take a key apart; parts that a damaged recording lacks are "-"."""
    parts = key.split(" ", 5)
    return NfsKey(*parts, *["-"] * (6 - len(parts)))


def mount_of(key: str) -> str:
    """Return what all rows of a mount begin with."""
    return key.rpartition(" ")[0]


def mount_row(key: str) -> str:
    """Key of the row of the whole mount, for any of its rows."""
    return f"{mount_of(key)} {_WHOLE}"


def latency_key(mount: str, operation: str, transport: str) -> str:
    """Key of a row of NFS_LATENCY; of a mount what all of its rows begin with."""
    return f"{mount} {operation} {transport}"


def latency_parts(key: str) -> tuple[str, str, str]:
    """Take such a key apart: mount, operation, transport; those that a damaged recording lacks are "-"."""
    parts = key.rsplit(" ", 2)
    mount, operation, transport = parts if len(parts) == 3 else (key, UNKNOWN, UNKNOWN)
    return mount, operation, transport
