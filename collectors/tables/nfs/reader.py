"""Reads NFS mounts: only files of /proc and /sys, because any call on a mount whose server is away may hang."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from collectors.kernel.identity import storable_name
from collectors.model import MISSING, Rows, Schema, Table
from collectors.sampling.reading import Reading
from collectors.tables.nfs.clients import ClientMounts, Links, client_links
from collectors.tables.nfs.latency import NfsLatency, TimedCalls, client_name
from collectors.tables.nfs.mountstats import MountedNfs, parse_mountstats
from collectors.tables.nfs.schema import BYTE_COUNTERS, NFS_OPERATION, NFS_TRANSPORT, OPERATION_COUNTERS, NfsKey
from collectors.tables.nfs.switches import MountInfo, SunrpcTransports, nfs_mountinfo
from engine.events import Event, EventKind
from engine.hostfs.kernel_files import unescape_octal, whole

_MODULE = "fs/nfsfs"
"""A link that the NFS client makes when it is loaded: without it there is nothing to read on hosts with many mounts."""


class NfsRow(Struct, frozen=True):
    """Key, name and raw values of one row; columns that it does not have are MISSING."""

    key: str
    name: str
    values: Mapping[str, int]


class NfsCollector:
    """Reads all tables; returns none on a host without NFS mounts."""

    def __init__(self, procfs: str, sysfs: str, latency: NfsLatency | None = None) -> None:
        """Read nothing yet; `latency` times calls, None where that is not wanted."""
        self._procfs, self._sysfs = procfs, sysfs
        self._latency = latency
        self._reported: set[str] = set()
        self._sunrpc = SunrpcTransports(sysfs)
        self._infos: dict[tuple[str, str], MountInfo] = {}
        self._links: Links = ()
        self._mounts: tuple[str, ...] = ()
        self._rows = {NFS_OPERATION.name: Rows((), ()), NFS_TRANSPORT.name: Rows((), ())}

    def read(self) -> Reading:
        """Read all counters."""
        mounts = self._read_mounts()
        if not mounts and not self._mounts:
            if self._latency is not None:
                self._latency.skip()
            return Reading()
        self._follow(mounts)
        self._sunrpc.list_switches()
        timed = self._timed(mounts)
        operations = [row for mount in mounts for row in operation_rows(mount)]
        operations += [_client_row(key) for key in (() if timed is None else timed.clients)]
        transports = [row for mount in mounts for row in transport_rows(mount, self._current(mount))]
        tables = dict((self._table(NFS_OPERATION, operations), self._table(NFS_TRANSPORT, transports)))
        if timed is None:
            return Reading(tables, events=self._events())
        name = timed.table.schema.name
        tables |= {name: timed.table, timed.slow.schema.name: timed.slow}
        return Reading(tables, {name: timed.histograms}, self._events())

    def close(self) -> None:
        """Detach; no file stays open."""
        if self._latency is not None:
            self._latency.close()

    def _timed(self, mounts: Sequence[MountedNfs]) -> TimedCalls | None:
        if self._latency is None:
            return None
        self._latency.start()
        self._follow_links(mounts)
        roots = self._procfs, self._sysfs
        return self._latency.read(
            (self._mounts, self._links, self._sunrpc.listed),
            lambda: ClientMounts(roots, mounts, self._infos, self._links, self._sunrpc),
        )

    def _follow_links(self, mounts: Sequence[MountedNfs]) -> None:
        """Read the RPC clients of mounts; others mean that a file system was mounted again, with another number."""
        links = client_links(self._sysfs, mounts, self._infos)
        if links != self._links:
            self._infos = nfs_mountinfo(self._procfs)
            self._links = client_links(self._sysfs, mounts, self._infos)

    def _events(self) -> tuple[Event, ...]:
        """Report what has no latency, each once."""
        notices = () if self._latency is None else self._latency.notices
        new = [text for text in notices if text not in self._reported]
        self._reported.update(new)
        return tuple(Event.now(EventKind.MONITOR, text) for text in new)

    def _read_mounts(self) -> list[MountedNfs]:
        if not os.path.lexists(f"{self._procfs}/{_MODULE}"):
            return []
        data = whole(f"{self._procfs}/self/mountstats")
        return parse_mountstats(storable_name(os.fsdecode(data))) if b" fstype nfs" in data else []

    def _follow(self, mounts: Sequence[MountedNfs]) -> None:
        """Look up addresses of servers when mounts have changed."""
        keys = tuple(mount.key().text for mount in mounts)
        if keys != self._mounts:
            self._mounts = keys
            self._infos = nfs_mountinfo(self._procfs)
        for mount in mounts:
            info = self._infos.get((mount.device, mount.point))
            mount.address = "" if info is None else info.address

    def _current(self, mount: MountedNfs) -> Sequence[Mapping[str, int]]:
        return self._sunrpc.of_mount(mount) if mount.address else ()

    def _table(self, schema: Schema, rows: Sequence[NfsRow]) -> tuple[str, Table]:
        keys, names = tuple(row.key for row in rows), tuple(row.name for row in rows)
        known = self._rows[schema.name]
        if (keys, names) != (known.keys, known.names):
            known = self._rows[schema.name] = Rows(keys, names)
        return schema.name, Table(schema, known, nfs_values(schema, rows))


def operation_rows(mount: MountedNfs) -> Iterator[NfsRow]:
    """Yield the row of the whole mount, with the sums of its operations, then a row per operation."""
    name = unescape_octal(mount.point)
    yield NfsRow(mount.key().text, f"{name} all", {**_sums(mount), **_bytes(mount)})
    for operation, values in mount.operations.items():
        yield NfsRow(mount.key(operation).text, f"{name} {operation}", values)


def _client_row(key: NfsKey) -> NfsRow:
    """Row of calls of an RPC client whose mount is not known: it has no counters of its own."""
    return NfsRow(key.text, f"{client_name(key)} {key.part}", {})


def transport_rows(mount: MountedNfs, current: Sequence[Mapping[str, int]]) -> Iterator[NfsRow]:
    """Yield a row per transport; `current` are its values of sysfs, in the same order, if they are known."""
    name = unescape_octal(mount.point)
    for position, transport in enumerate(mount.transports):
        now = current[position] if position < len(current) else {}
        key = mount.key(str(position + 1)).text
        yield NfsRow(key, f"{name} {transport.kind} {position + 1}", {**transport.values, **now})


def nfs_values(schema: Schema, rows: Sequence[NfsRow]) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    """Raw values, shape (rows, columns of the schema)."""
    columns = {column.id: position for position, column in enumerate(schema.columns)}
    values = np.full((len(rows), len(columns)), MISSING, np.uint64)
    for at, row in enumerate(rows):
        for column, value in row.values.items():
            values[at, columns[column]] = min(value, int(MISSING) - 1)
    return values


def _sums(mount: MountedNfs) -> dict[str, int]:
    """Add up the operations; a counter that some of them lack has no sum."""
    found = list(mount.operations.values())
    return {
        name: sum(values[name] for values in found)
        for name in OPERATION_COUNTERS
        if all(name in values for values in found)
    }


def _bytes(mount: MountedNfs) -> dict[str, int]:
    return {name: mount.bytes[name] for name in BYTE_COUNTERS if name in mount.bytes}
