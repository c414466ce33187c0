"""NFS clients as targets, found by mount, server or switch, and their tunables (net/sunrpc/sysfs.c, Linux 5.14)."""

from __future__ import annotations

from pathlib import Path

from engine.errors import UsageError
from engine.hostfs.mounts import parse_mountinfo
from engine.hostfs.sunrpc import SWITCH, SWITCHES, TRANSPORT, is_callback, transport_info
from engine.text import safe_text, short_text, whole_number
from engine.tune.nfs_transports import ADD_FILE, OnlineTransports, count_transports
from engine.tune.tree import KernelTree
from engine.tune.tunable import Target, Tunable, TunedKind


def nfs_targets(tree: KernelTree, name: str, mountinfo: Path = Path("/proc/self/mountinfo")) -> list[Target]:
    """Find the clients that a scope names: a switch, the address of a server, or a mount point.

    Mounts of one server with the same options share a client: the kernel does not say which mounts.

    Raises:
        UsageError: there is none, or the mount may have one of several.
    """
    clients = _clients(tree)
    if name.startswith("/"):
        switch = _of_mount(tree, clients, name, mountinfo)
        return [_target(switch, f"{name} ({switch})")]
    named = [switch for switch, address in clients.items() if name in {switch, address}]
    if not named:
        raise UsageError(f"scope 'nfs:{_shown(name)}': no such client; {_known(clients)}")
    return [_target(switch, f"{clients[switch]} ({switch})") for switch in named]


def every_nfs_target(tree: KernelTree) -> list[Target]:
    """List the clients of all servers."""
    return [_target(switch, f"{address} ({switch})") for switch, address in _clients(tree).items()]


def _clients(tree: KernelTree) -> dict[str, str]:
    """Address of the server by switch."""
    return {switch: address for switch in tree.names(SWITCHES) if (address := _address(tree, switch))}


def _of_mount(tree: KernelTree, clients: dict[str, str], point: str, mountinfo: Path) -> str:
    text = mountinfo.read_text(errors="surrogateescape")
    mounts = [mount for mount in parse_mountinfo(text) if mount.point == point and mount.filesystem.startswith("nfs")]
    if not mounts:
        raise UsageError(f"scope 'nfs:{_shown(point)}': no NFS is mounted there")
    options = dict(option.partition("=")[::2] for option in mounts[-1].options.split(","))
    count = whole_number(options.get("nconnect", "1"))
    counts = {
        switch: count_transports(tree, f"{SWITCHES}/{switch}")
        for switch, address in clients.items()
        if address == options.get("addr")
    }
    fitting = [switch for switch, found in counts.items() if found == count]
    # Others may have been made since.
    makes = {switch for switch in counts if ADD_FILE in tree.names(f"{SWITCHES}/{switch}")}
    fitting = fitting or [switch for switch in makes if counts[switch] > (count or 0)]
    if len(fitting) != 1:
        which = "none" if not fitting else "any of these"
        raise UsageError(f"scope 'nfs:{_shown(point)}': {which} may be its client; {_known(clients)}")
    return fitting[0]


def _address(tree: KernelTree, switch: str) -> str:
    """Address of the server; empty for callbacks of a server, which have no remote port, and for local services."""
    folder = f"{SWITCHES}/{switch}"
    names = [name for name in tree.names(folder) if TRANSPORT.fullmatch(name)] if SWITCH.fullmatch(switch) else []
    if not names or is_callback(transport_info(tree.read(f"{folder}/{names[0]}/xprt_info") or "")):
        return ""
    return tree.read(f"{folder}/{names[0]}/dstaddr") or ""


def _target(switch: str, name: str) -> Target:
    return Target(TunedKind.NFS_CLIENT, name, f"{SWITCHES}/{switch}")


def _known(clients: dict[str, str]) -> str:
    known = ", ".join(f"nfs:{switch} ({safe_text(address)})" for switch, address in list(clients.items())[:8])
    return f"there are {known}" if known else "this host has no NFS client, or hides it (Linux 5.14 shows them)"


def _shown(text: str) -> str:
    return safe_text(short_text(text, 80))


_ONLINE = OnlineTransports()

NFS = (
    Tunable(
        "nfs.transports",
        TunedKind.NFS_CLIENT,
        "online transports",
        "connections that take new calls: those of nconnect, or more",
        legal=_ONLINE.legal,
        default=_ONLINE.default,
        computed=_ONLINE,
        restored=_ONLINE,
    ),
)
