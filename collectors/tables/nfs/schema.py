"""The raw tables of NFS mounts, and the keys of their rows."""

from __future__ import annotations

from dataclasses import dataclass

from collectors.model import Column, Kind, Schema

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

_WHOLE = "all"


@dataclass(frozen=True, slots=True)
class NfsKey:
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
