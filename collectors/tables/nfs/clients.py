"""Which mounts an RPC client works for, as the kernel's files say, and where they do not.

From Linux 6.5 on each NFS file system has links to its clients (fs/nfs/sysfs.c: nfs_sysfs_link_rpc_client). Before, the
switch of a client leads to its transports, which decides if only one file system uses them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from collectors.tables.nfs.mountstats import MountedNfs
from collectors.tables.nfs.switches import MountInfo, SunrpcTransports
from engine.hostfs.kernel_files import link_target, whole

_FILE_SYSTEMS = "fs/nfs"
_LINKS = ("nfs_client", "nfs_state_client")
"""Links of calls on files, and of calls on the lease, which the kernel counts for every mount that shares it."""
_CLIENTS = "kernel/sunrpc/rpc-clients"
_VOLUMES = "fs/nfsfs/volumes"


Links = tuple[tuple[int, int], ...]
"""Number of an RPC client, and position of a mount that it works for."""
Infos = Mapping[tuple[str, str], MountInfo]
"""Mounts by export and mount point."""


def client_links(sysfs: str, mounts: Sequence[MountedNfs], infos: Infos) -> Links:
    """Read which RPC clients the file system of each mount has; empty before Linux 6.5."""
    found = []
    for position, mount in enumerate(mounts):
        device = _device_of(mount, infos)
        for link in _LINKS if device else ():
            client = _number(f"{sysfs}/{_FILE_SYSTEMS}/{device}/{link}", "clnt-")
            if client is not None:
                found.append((client, position))
    return tuple(found)


class ClientMounts:
    """Looks up mounts by RPC client; has the answers of one state of mounts and transports."""

    def __init__(
        self,
        roots: tuple[str, str],
        mounts: Sequence[MountedNfs],
        infos: Infos,
        links: Links,
        sunrpc: SunrpcTransports,
    ) -> None:
        """Read nothing yet; `roots` are procfs and sysfs."""
        self._procfs, self._sysfs = roots
        self._sunrpc = sunrpc
        self._mounts = tuple(mounts)
        self._infos = infos
        self._linked: dict[int, tuple[MountedNfs, ...]] = {}
        for client, position in links:
            self._linked[client] = (*self._linked.get(client, ()), mounts[position])
        self._by_client: dict[int, tuple[MountedNfs, ...]] = {}
        self._transports: dict[tuple[int, str], tuple[int, ...]] = {}

    def of_client(self, client: int, version: int) -> tuple[MountedNfs, ...]:
        """Mounts that a client of this version of NFS works for; none where the kernel does not say."""
        if client not in self._by_client:
            self._by_client[client] = self._linked.get(client, ()) or self._by_switch(client, version)
        return self._by_client[client]

    def transport_number(self, client: int, mount: MountedNfs, transport: int) -> int:
        """Return the number of a transport among those of the mount, from 1 on; 0 where that is not certain."""
        key = client, mount.key().text
        if key not in self._transports:
            self._transports[key] = self._sunrpc.ids_of(self._switch_of(client), mount)
        ids = self._transports[key]
        return ids.index(transport) + 1 if transport in ids else 0

    def server_of(self, client: int) -> str:
        """Address of the server that a client calls; empty if it is not known."""
        return self._sunrpc.address_of(self._switch_of(client))

    def _by_switch(self, client: int, version: int) -> tuple[MountedNfs, ...]:
        """Mounts of the only file system that can use the transports of a client."""
        switch = self._switch_of(client)
        if not switch or self._linked or self._has_hidden():
            return ()
        same = (mount for mount in self._mounts if mount.key().version.partition(".")[0] == str(version))
        found = tuple(mount for mount in same if self._sunrpc.may_be(switch, mount))
        return found if len({_device_of(mount, self._infos) for mount in found}) == 1 else ()

    def _has_hidden(self) -> bool:
        """Whether there are file systems of this network namespace that are mounted only in other mount namespaces."""
        lines = os.fsdecode(whole(f"{self._procfs}/{_VOLUMES}")).splitlines()[1:]
        devices = {words[3] for line in lines if len(words := line.split()) > 3}
        return not devices <= {info.device for info in self._infos.values()}

    def _switch_of(self, client: int) -> str:
        return os.path.basename(link_target(f"{self._sysfs}/{_CLIENTS}/clnt-{client}/switch"))  # noqa: PTH119 - names


def _device_of(mount: MountedNfs, infos: Infos) -> str:
    info = infos.get((mount.device, mount.point))
    return "" if info is None else info.device


def _number(path: str, prefix: str) -> int | None:
    name = os.path.basename(link_target(path))  # noqa: PTH119 - names
    number = name.removeprefix(prefix)
    return int(number) if name != number and number.isdecimal() else None
