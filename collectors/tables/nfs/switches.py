"""Transports in /sys/kernel/sunrpc (Linux 5.14), and which of them are those of a mount (net/sunrpc/sysfs.c)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from collectors.tables.nfs.mountstats import MountedNfs
from engine._native import is_sysfs
from engine.hostfs.kernel_files import entries_of, read_text, whole
from engine.hostfs.sunrpc import CONNECTED, OFFLINE, SWITCH, SWITCHES, TRANSPORT, is_callback, is_main, transport_info

_GAUGES = {
    "num_reqs": "slots_now",
    "max_num_slots": "slots_limit",
    "binding_q_len": "binding_now",
    "sending_q_len": "sending_now",
    "pending_q_len": "pending_now",
    "backlog_q_len": "backlog_now",
}


class SunrpcTransport(Struct, frozen=True):
    """One folder below a switch."""

    folder: str
    kind: str
    address: str
    """Address of the server."""
    id: int
    """Number that tracepoints name it by; that of a transport that is gone is used again."""
    made: int
    """Number that grows in the order in which transports were made, which is the mount's order."""


class SunrpcTransports:
    """Reads transports that belong to mounts; the folders are listed at every `list_switches`."""

    def __init__(self, sysfs: str) -> None:
        self._root = f"{sysfs}/{SWITCHES}"
        self._is_sysfs = is_sysfs(sysfs)
        self._known: dict[str, SunrpcTransport] = {}
        self._switches: dict[str, tuple[SunrpcTransport, ...]] = {}
        self._infos: dict[str, dict[str, str]] = {}

    def list_switches(self) -> None:
        """List the folders; addresses of those that were there before are not read again."""
        self._infos.clear()
        found = {name: tuple(self._transports(name)) for name in entries_of(self._root) if SWITCH.fullmatch(name)}
        self._known = {each.folder: each for switch in found.values() for each in switch}
        self._switches = {name: switch for name, switch in found.items() if switch}

    def of_mount(self, mount: MountedNfs) -> tuple[Mapping[str, int], ...]:
        """Values of each transport of a mount, in its order; none where no switch, or more than one, can be it."""
        orders = (self._in_order(switch, mount) for switch in self._switches.values())
        fitting = [order for order in orders if order]
        return tuple(map(self._values, fitting[0])) if len(fitting) == 1 else ()

    @property
    def listed(self) -> tuple[tuple[SunrpcTransport, ...], ...]:
        """All transports by switch, as listed last."""
        return tuple(self._switches.values())

    def may_be(self, switch: str, mount: MountedNfs) -> bool:
        """Whether the transports of a switch have the address, number and kinds of those of a mount."""
        return self._may_be(self._switches.get(switch, ()), mount)

    def ids_of(self, switch: str, mount: MountedNfs) -> tuple[int, ...]:
        """Ids of the transports of a switch in the order of the mount's; none where the order is not certain."""
        return tuple(each.id for each in self._in_order(self._switches.get(switch, ()), mount))

    def address_of(self, switch: str) -> str:
        """Address of the server that a switch leads to; empty if it is not known."""
        return next((each.address for each in self._switches.get(switch, ())), "")

    def _transports(self, switch: str) -> Iterator[SunrpcTransport]:
        folder = f"{self._root}/{switch}"
        names = [match for name in entries_of(folder) if (match := TRANSPORT.fullmatch(name))]
        found = [self._known.get(f"{folder}/{match[0]}") or self._new(folder, match) for match in names]
        yield from sorted(found, key=lambda each: each.made)

    def _new(self, folder: str, match: re.Match[str]) -> SunrpcTransport:
        path, number = f"{folder}/{match[0]}", int(match[1])
        made = _inode(path) if self._is_sysfs else number
        return SunrpcTransport(path, match[2], read_text(f"{path}/dstaddr") or "", number, made)

    def _in_order(self, switch: Sequence[SunrpcTransport], mount: MountedNfs) -> tuple[SunrpcTransport, ...]:
        """Transports of a switch in the order of the mount's; none if they are not, or if the order is not certain.

        Local ports say which is which. NFSv4 mounts have none in mountstats; theirs are taken in the order in which
        they were made, the main one first.
        """
        if not self._may_be(switch, mount):
            return ()
        by_port = {self._port(each): each for each in switch if self._port(each)}
        named = [by_port.get(transport.port or 0) for transport in mount.transports]
        others = [each for each in switch if each not in named]
        if any(transport.port for transport in mount.transports):
            if any(map(self._port, others)):
                return ()
        elif any(is_main(self._info(each)) for each in switch[1:]):
            return ()
        rest = iter(others)
        return tuple(found or next(rest) for found in named)

    def _may_be(self, switch: Sequence[SunrpcTransport], mount: MountedNfs) -> bool:
        """Whether address, number and kinds are those of a mount; the callbacks of a server have no remote port."""
        if len(switch) != len(mount.transports) or any(each.address != mount.address for each in switch):
            return False
        if sorted(each.kind for each in switch) != sorted(each.kind for each in mount.transports):
            return False
        return not any(each.kind == "tcp" and is_callback(self._info(each)) for each in switch)

    def _port(self, transport: SunrpcTransport) -> int:
        """Local port, 0 without a connection."""
        text = self._info(transport).get("src_port", "")
        return int(text) if text.isdecimal() else 0

    def _info(self, transport: SunrpcTransport) -> dict[str, str]:
        if transport.folder not in self._infos:
            self._infos[transport.folder] = transport_info(read_text(f"{transport.folder}/xprt_info") or "")
        return self._infos[transport.folder]

    def _values(self, transport: SunrpcTransport) -> dict[str, int]:
        info = self._info(transport)
        found = {ours: int(info[name]) for name, ours in _GAUGES.items() if info.get(name, "").isdecimal()}
        state = (read_text(f"{transport.folder}/xprt_state") or "").split()
        if state:
            found["online"] = int(CONNECTED in state and OFFLINE not in state)
        return found


class MountInfo(Struct, frozen=True):
    """What /proc/self/mountinfo says of an NFS mount."""

    address: str
    """Address of the server; empty if it is not known."""
    device: str
    """Number of the file system, as "0:36": the same for all mounts of it."""


def nfs_mountinfo(procfs: str) -> dict[tuple[str, str], MountInfo]:
    r"""NFS mounts of /proc/self/mountinfo by export and mount point (with `\040` escapes)."""
    return dict(_mountinfo(os.fsdecode(whole(f"{procfs}/self/mountinfo"))))


def _mountinfo(text: str) -> Iterator[tuple[tuple[str, str], MountInfo]]:
    for line in text.splitlines():
        before, _, after = line.partition(" - nfs")
        words, filesystem = before.split(" "), after.split(" ")
        if len(words) > 4 and len(filesystem) == 3:
            address = next((each[5:] for each in filesystem[2].split(",") if each.startswith("addr=")), "")
            yield (filesystem[1], words[4]), MountInfo(address, words[2])


def _inode(folder: str) -> int:
    """Inode number, which sysfs gives in ascending order and never twice; a folder that is gone is the last."""
    try:
        return os.stat(folder).st_ino  # noqa: PTH116 - no object for each
    except OSError:
        return sys.maxsize
