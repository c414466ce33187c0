"""NFS mounts in /proc/self/mountstats (fs/nfs/super.c: nfs_show_stats, net/sunrpc/stats.c, xprtsock.c, xprtrdma).

Lines are read by their number of fields: kernels have added some at the end. A line that is damaged is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from collectors.tables.nfs.schema import BYTE_COUNTERS, OPERATION_COUNTERS, NfsKey

_KINDS = ("nfs", "nfs4")
_FEWEST = len(OPERATION_COUNTERS) - 1
_UNUSED = ": 0 0 0 "
"""Text of the lines of operations never used, which are most: they are left out before anything else."""
_LARGEST = (1 << 64) - 2
_MOST_TRANSPORTS = 256
"""Far more than nconnect allows (16), for transports added later and session trunking."""

_QUEUES = ("sends", "receives", "bad_xids", "outstanding_sum", "backlog_sum")
_TAIL = ("slots_peak", "sending_sum", "pending_sum")
_CONNECTED = ("", "connects", "", "idle_s")
_RDMA = (
    "", "", "", "rdma_sent_bytes", "rdma_received_bytes", "", "", "", "rdma_failed_marshal", "rdma_bad_replies",
    "", "", "", "", "", "rdma_empty_sendctx", "rdma_reply_waits",
)  # fmt: skip
_TRANSPORT_FIELDS: Mapping[str, tuple[str, ...]] = {
    "tcp": ("port", *_CONNECTED, *_QUEUES, *_TAIL),
    "local": (*_CONNECTED, *_QUEUES, *_TAIL),
    "udp": ("port", "", *_QUEUES, *_TAIL),
    "rdma": ("port", *_CONNECTED, *_QUEUES, *_RDMA),
}
"""Fields after the kind; those without a name are not kept. Before Linux 3.4 the last three of sockets are absent."""


class NfsTransport(Struct, frozen=True):
    """One line `xprt:`."""

    kind: str
    """tcp, udp, rdma, or local."""
    port: int | None
    """Local port; 0 where it is not a reserved one."""
    values: Mapping[str, int]


class MountedNfs(Struct):
    """Counters of one mount."""

    device: str
    point: str
    address: str = ""
    """Address of the server, which is not in this file."""
    options: Mapping[str, str] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    transports: list[NfsTransport] = field(default_factory=list)
    operations: dict[str, dict[str, int]] = field(default_factory=dict)
    """Operations by name, if they were used at least once."""

    def key(self, part: str = "all") -> NfsKey:
        """Key of the mount, of an operation, or of a transport."""
        version, protocol = self.options.get("vers", "-"), self.options.get("proto", "-")
        return NfsKey(version, protocol, self.address or "-", self.device, self.point, part)


def parse_mountstats(text: str) -> list[MountedNfs]:
    """Return all NFS mounts in the order of the file; the last one of several on the same point with the same key."""
    found: dict[str, MountedNfs] = {}
    for mount in _mounts(text.split("\n")):
        found[mount.key().text] = mount
    return list(found.values())


def _mounts(lines: Iterable[str]) -> Iterator[MountedNfs]:
    mount: MountedNfs | None = None
    for line in lines:
        if line.startswith("device "):
            if mount is not None:
                yield mount
            mount = _begun(line)
        elif mount is not None and _UNUSED not in line:
            _add_line(mount, line)
    if mount is not None:
        yield mount


def _begun(line: str) -> MountedNfs | None:
    """Mount of `device SERVER:/PATH mounted on POINT with fstype nfs4 statvers=1.1`; None for another filesystem."""
    words = line.split(" ")
    if len(words) != 9 or words[7] not in _KINDS or words[2:4] != ["mounted", "on"]:
        return None
    return MountedNfs(words[1], words[4])


def _add_line(mount: MountedNfs, line: str) -> None:
    name, _, rest = line.strip().partition(":")
    if name == "opts":
        mount.options = _options(rest.strip())
    elif name == "bytes":
        mount.bytes.update(_named(BYTE_COUNTERS, rest.split()))
    elif name == "xprt":
        if len(mount.transports) < _MOST_TRANSPORTS:
            mount.transports.extend(_transport(rest.split()))
    elif name.isupper():
        _add_operation(mount, name, rest.split())


def _options(text: str) -> dict[str, str]:
    pairs = (option.partition("=") for option in text.split(","))
    return {name: value.replace(" ", "") for name, _, value in pairs if value}


def _add_operation(mount: MountedNfs, name: str, fields: list[str]) -> None:
    if len(fields) < _FEWEST or fields[0] == "0" or " " in name:
        return
    values = _named(OPERATION_COUNTERS, fields)
    if len(values) >= min(len(fields), len(OPERATION_COUNTERS)):
        mount.operations[name] = values


def _transport(words: list[str]) -> Iterator[NfsTransport]:
    kind, fields = (words[0], words[1:]) if words else ("", [])
    names = _TRANSPORT_FIELDS.get(kind, ())
    needed = len(names) - (len(_RDMA) if kind == "rdma" else len(_TAIL))
    if not names or len(fields) < needed:
        return
    values = _named(names, fields)
    if "sends" in values and "receives" in values:
        yield NfsTransport(kind, values.pop("port", None), values)


def _named(names: Iterable[str], fields: Iterable[str]) -> dict[str, int]:
    """Values of the fields by name; those without a name, and those that are no counts, are left out."""
    pairs = zip(names, fields, strict=False)
    return {name: min(int(text), _LARGEST) for name, text in pairs if name and text.isdecimal() and len(text) <= 20}
