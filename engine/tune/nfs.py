"""NFS clients as targets, found by mount, server or switch, and their tunables (net/sunrpc/sysfs.c, Linux 5.14)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from engine.errors import LunscopeError, UsageError
from engine.hostfs.mounts import parse_mountinfo
from engine.hostfs.sunrpc import OFFLINE, REMOVED, SWITCH, SWITCHES, TRANSPORT, is_callback, is_main, transport_info
from engine.text import safe_text, short_text, whole_number
from engine.tune.legal import Legal
from engine.tune.tree import KernelTree
from engine.tune.tunable import Target, Tunable, TunedKind

ADD_ENV = "LUNSCOPE_ADD_XPRT"
"""Set to 1 where the distribution's kernel has the fix below."""
ADD_FILE = "add_xprt"
"""File of a switch since Linux 6.15: each write makes a transport."""
_MOST = 16
"""NFS_MAX_CONNECTIONS of fs/nfs, the most that nconnect may be."""
_FIXED_IN = 7, 2
"""Before, `add_xprt` leaves the address of the client's end uninitialised ("sunrpc: fix uninitialized xprt_create_args
structure"), which may crash the kernel; stable kernels have the fix from different releases on."""


class _Transport(Struct, frozen=True):
    """One connection to the server."""

    folder: str
    is_main: bool
    made: int
    """Inode number, which sysfs gives in ascending order."""
    is_offline: bool


class OnlineTransports:
    """The number of transports that take new calls: the first ones in the order in which they were made."""

    def __init__(self, release: Callable[[], str] = lambda: os.uname().release) -> None:
        self._release = release
        """Release of the kernel."""

    def read(self, tree: KernelTree, target: Target) -> str | None:
        """Return it; None where the target has no transports whose state can be seen."""
        transports = _transports(tree, target.folder)
        return str(sum(not each.is_offline for each in transports)) if transports else None

    def write(self, tree: KernelTree, target: Target, value: str) -> None:
        """Take the last ones offline, bring the next ones online or make more; calls sent before are answered.

        Raises:
            LunscopeError: the kernel refuses it, or another one than the last ones is offline.
        """
        transports, wanted = _transports(tree, target.folder), whole_number(value)
        refusal = _refusal(tree, transports)
        if wanted is None or refusal:
            raise LunscopeError(f"{target.name}: {refusal or f'{value} is no number of transports'}")
        if wanted > len(transports):
            self._add(tree, target, wanted - len(transports), transports)
        for number, transport in enumerate(transports):
            if transport.is_offline != (number >= wanted):
                tree.write(f"{transport.folder}/xprt_state", "online" if number < wanted else "offline")

    def refusal(self, tree: KernelTree, target: Target) -> str:
        """Say why it cannot be set; empty if it can."""
        return _refusal(tree, _transports(tree, target.folder))

    def tidy(self, tree: KernelTree, target: Target) -> None:
        """Nothing is left behind by a change that was killed."""

    def kept(self, tree: KernelTree, target: Target) -> str:
        """Return how many there are, online or not: those that come later are removed."""
        return str(len(_transports(tree, target.folder)))

    def restore(self, tree: KernelTree, target: Target, before: str, kept: str) -> None:
        """Remove those that were made since, and set the number of before.

        Raises:
            LunscopeError: the kernel refuses it.
        """
        count = whole_number(kept)
        if count:
            _remove(tree, _transports(tree, target.folder)[count:])
        self.write(tree, target, before)

    def legal(self, tree: KernelTree, target: Target) -> Legal:
        """From the main one alone to all that the mount has made, or to as many as nconnect could be."""
        count = max(1, len(_transports(tree, target.folder)))
        why = self._why_none_are_made(tree, target)
        most = count if why else max(count, _MOST)
        return Legal(
            least=1, most=most, check=lambda value: f"{value} is not legal: 1..{most}{f'; {why}' if why else ''}"
        )

    def default(self, tree: KernelTree, target: Target) -> str:
        """All of them."""
        return str(len(_transports(tree, target.folder)))

    def _why_none_are_made(self, tree: KernelTree, target: Target) -> str:
        """Say why there can be no more than the mount has made; empty if there can."""
        if tree.read(f"{target.folder}/{ADD_FILE}") is None:
            return f"more need the mount option nconnect, or a kernel with {ADD_FILE} (Linux 6.15)"
        release = re.match(r"(\d+)\.(\d+)", self._release())
        if os.environ.get(ADD_ENV) == "1" or (release and (int(release[1]), int(release[2])) >= _FIXED_IN):
            return ""
        fixed = ".".join(map(str, _FIXED_IN))
        return f"making more may crash Linux before {fixed} ({ADD_FILE}): set {ADD_ENV}=1 if this kernel has the fix"

    def _add(self, tree: KernelTree, target: Target, count: int, before: Sequence[_Transport]) -> None:
        """Make transports, all or none."""
        if why := self._why_none_are_made(tree, target):
            raise LunscopeError(f"{target.name}: {why}")
        problem = ""
        try:
            for _ in range(count):
                tree.write(f"{target.folder}/{ADD_FILE}", "1")
        except LunscopeError as error:
            problem = str(error)
        made = _transports(tree, target.folder)[len(before) :]
        if problem or len(made) != count:
            _remove(tree, made)
            raise LunscopeError(problem or f"{target.name}: the kernel made {len(made)} transports, not {count}")


def _remove(tree: KernelTree, transports: Sequence[_Transport]) -> None:
    """Remove transports, the last first; the kernel removes what is offline only."""
    for transport in reversed(transports):
        if not transport.is_offline:
            tree.write(f"{transport.folder}/xprt_state", "offline")
        tree.write(f"{transport.folder}/xprt_state", "remove")


def _refusal(tree: KernelTree, transports: Sequence[_Transport]) -> str:
    if not transports:
        return "it is gone, or the kernel does not show its transports (Linux 5.14 does)"
    offline = [each.is_offline for each in transports]
    if offline != sorted(offline):
        first = transports[offline.index(True)].folder
        return f"{tree.root}/{first} was taken offline by others, which a number cannot say: bring it online first"
    return tree.refusal(f"{transports[-1].folder}/xprt_state")


def count_transports(tree: KernelTree, switch: str) -> int:
    """Count the transports of a switch; 0 where their states cannot be read."""
    return len(_transports(tree, switch))


def _transports(tree: KernelTree, switch: str) -> list[_Transport]:
    """List the transports of a switch, the main one first; empty where their states cannot be read.

    Nothing but a switch has any, whatever folder a record of a change names: only their files are written. Those that
    are being removed are none any more.
    """
    folder, _, name = switch.rpartition("/")
    if folder != SWITCHES or not SWITCH.fullmatch(name):
        return []
    found: list[_Transport] = []
    for transport in tree.names(switch):
        path = f"{switch}/{transport}"
        if not TRANSPORT.fullmatch(transport):
            continue
        info, state, made = tree.read(f"{path}/xprt_info"), tree.read(f"{path}/xprt_state"), tree.inode(path)
        if made is None or (state is not None and REMOVED in state.split()):
            continue
        if info is None or state is None:
            return []
        found.append(_Transport(path, is_main(transport_info(info)), made, OFFLINE in state.split()))
    return sorted(found, key=lambda each: (not each.is_main, each.made))


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
