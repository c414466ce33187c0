"""Transports in /sys/kernel/sunrpc (Linux 5.14), and which of them are those of a mount (net/sunrpc/sysfs.c)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from collectors.tables.nfs.mountstats import MountedNfs
from engine.hostfs.kernel_files import start_of, whole

_SWITCHES = "kernel/sunrpc/xprt-switches"
_SWITCH = re.compile(r"switch-\d+")
_TRANSPORT = re.compile(r"xprt-(\d+)-(tcp|udp|rdma|local)")
_GAUGES = {
    "num_reqs": "slots_now",
    "max_num_slots": "slots_limit",
    "binding_q_len": "binding_now",
    "sending_q_len": "sending_now",
    "pending_q_len": "pending_now",
    "backlog_q_len": "backlog_now",
}


@dataclass(frozen=True, slots=True)
class SunrpcTransport:
    """One folder below a switch."""

    folder: str
    kind: str
    address: str
    """Address of the server."""


class SunrpcTransports:
    """Reads transports that belong to mounts; the folders are listed at every `list_switches`."""

    def __init__(self, sysfs: str) -> None:
        self._root = f"{sysfs}/{_SWITCHES}"
        self._known: dict[str, SunrpcTransport] = {}
        self._switches: tuple[tuple[SunrpcTransport, ...], ...] = ()
        self._infos: dict[str, dict[str, str]] = {}

    def list_switches(self) -> None:
        """List the folders; addresses of those that were there before are not read again."""
        self._infos.clear()
        found = tuple(tuple(self._transports(name)) for name in _listed(self._root) if _SWITCH.fullmatch(name))
        self._known = {each.folder: each for switch in found for each in switch}
        self._switches = tuple(switch for switch in found if switch)

    def of_mount(self, mount: MountedNfs) -> tuple[Mapping[str, int], ...]:
        """Values of each transport of a mount, in its order; none where no switch, or more than one, can be it."""
        fitting = [found for switch in self._switches if (found := self._in_order(switch, mount))]
        return tuple(map(self._values, fitting[0])) if len(fitting) == 1 else ()

    def _transports(self, switch: str) -> Iterator[SunrpcTransport]:
        folder = f"{self._root}/{switch}"
        names = [match for name in _listed(folder) if (match := _TRANSPORT.fullmatch(name))]
        for match in sorted(names, key=lambda match: int(match[1])):
            path = f"{folder}/{match[0]}"
            known = self._known.get(path)
            yield known if known is not None else SunrpcTransport(path, match[2], _text(f"{path}/dstaddr"))

    def _in_order(self, switch: Sequence[SunrpcTransport], mount: MountedNfs) -> tuple[SunrpcTransport, ...]:
        """Transports of a switch in the order of the mount's; none if they are not, or if the order is not certain.

        Numbers are used again, so those of a mount may be in any order: local ports say which is which. NFSv4 mounts
        have none in mountstats; theirs are taken in order of their numbers, of which the main one is the first.
        """
        if not self._may_be(switch, mount):
            return ()
        by_port = {self._port(each): each for each in switch if self._port(each)}
        named = [by_port.get(transport.port or 0) for transport in mount.transports]
        others = [each for each in switch if each not in named]
        if any(transport.port for transport in mount.transports):
            if any(map(self._port, others)):
                return ()
        elif any(self._info(each).get("main_xprt") == "1" for each in switch[1:]):
            return ()
        rest = iter(others)
        return tuple(found or next(rest) for found in named)

    def _may_be(self, switch: Sequence[SunrpcTransport], mount: MountedNfs) -> bool:
        """Whether address, number and kinds are those of a mount; the callbacks of a server have no remote port."""
        if len(switch) != len(mount.transports) or any(each.address != mount.address for each in switch):
            return False
        if sorted(each.kind for each in switch) != sorted(each.kind for each in mount.transports):
            return False
        return all(each.kind != "tcp" or self._info(each).get("dst_port") != "0" for each in switch)

    def _port(self, transport: SunrpcTransport) -> int:
        """Local port, 0 without a connection."""
        text = self._info(transport).get("src_port", "")
        return int(text) if text.isdecimal() else 0

    def _info(self, transport: SunrpcTransport) -> dict[str, str]:
        if transport.folder not in self._infos:
            lines = _text(f"{transport.folder}/xprt_info").splitlines()
            pairs = (line.partition("=") for line in lines)
            self._infos[transport.folder] = {name: value for name, sign, value in pairs if sign}
        return self._infos[transport.folder]

    def _values(self, transport: SunrpcTransport) -> dict[str, int]:
        info = self._info(transport)
        found = {ours: int(info[name]) for name, ours in _GAUGES.items() if info.get(name, "").isdecimal()}
        state = _text(f"{transport.folder}/xprt_state")
        if state:
            found["online"] = int("CONNECTED" in state.split() and "OFFLINE" not in state.split())
        return found


def server_addresses(procfs: str) -> dict[tuple[str, str], str]:
    r"""Addresses of the servers by export and mount point (with `\040` escapes): `addr` in /proc/self/mountinfo."""
    return dict(_addresses(os.fsdecode(whole(f"{procfs}/self/mountinfo"))))


def _addresses(text: str) -> Iterator[tuple[tuple[str, str], str]]:
    for line in text.splitlines():
        before, _, after = line.partition(" - nfs")
        words, filesystem = before.split(" "), after.split(" ")
        if len(words) > 4 and len(filesystem) == 3:
            address = next((each[5:] for each in filesystem[2].split(",") if each.startswith("addr=")), "")
            yield (filesystem[1], words[4]), address


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names
    except OSError:
        return []


def _text(path: str) -> str:
    return os.fsdecode(start_of(path)).strip()
