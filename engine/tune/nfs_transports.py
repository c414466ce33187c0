"""How many transports of an NFS client take new calls: some taken offline, or others made (net/sunrpc/sysfs.c)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from engine.errors import LunscopeError
from engine.hostfs.sunrpc import OFFLINE, REMOVED, SWITCH, SWITCHES, TRANSPORT, is_main, transport_info
from engine.text import whole_number
from engine.tune.legal import Legal
from engine.tune.tree import KernelTree
from engine.tune.tunable import Target

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
