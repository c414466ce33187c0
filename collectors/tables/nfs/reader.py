"""Reads NFS mounts: only files of /proc and /sys, because any call on a mount whose server is away may hang."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collectors.kernel.identity import storable_name
from collectors.model import MISSING, Rows, Schema, Table
from collectors.sampling.reading import Reading
from collectors.tables.nfs.mountstats import MountedNfs, parse_mountstats
from collectors.tables.nfs.schema import BYTE_COUNTERS, NFS_OPERATION, NFS_TRANSPORT, OPERATION_COUNTERS
from collectors.tables.nfs.sunrpc import SunrpcTransports, server_addresses
from engine.hostfs.kernel_files import unescape_octal, whole

_MODULE = "fs/nfsfs"
"""A link that the NFS client makes when it is loaded: without it there is nothing to read on hosts with many mounts."""


@dataclass(frozen=True, slots=True)
class NfsRow:
    """Key, name and raw values of one row; columns that it does not have are MISSING."""

    key: str
    name: str
    values: Mapping[str, int]


class NfsCollector:
    """Reads both tables; returns none on a host without NFS mounts."""

    def __init__(self, procfs: str, sysfs: str) -> None:
        self._procfs = procfs
        self._sunrpc = SunrpcTransports(sysfs)
        self._addresses: dict[tuple[str, str], str] = {}
        self._mounts: tuple[str, ...] = ()
        self._rows = {NFS_OPERATION.name: Rows((), ()), NFS_TRANSPORT.name: Rows((), ())}

    def read(self) -> Reading:
        """Read all counters."""
        mounts = self._read_mounts()
        if not mounts and not self._mounts:
            return Reading()
        self._follow(mounts)
        self._sunrpc.list_switches()
        operations = [row for mount in mounts for row in operation_rows(mount)]
        transports = [row for mount in mounts for row in transport_rows(mount, self._current(mount))]
        return Reading(dict((self._table(NFS_OPERATION, operations), self._table(NFS_TRANSPORT, transports))))

    def close(self) -> None:
        """Do nothing: no file stays open."""

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
            self._addresses = server_addresses(self._procfs)
        for mount in mounts:
            mount.address = self._addresses.get((mount.device, mount.point), "")

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
    """Add up the operations; of a counter that some of them lack there is no sum."""
    found = list(mount.operations.values())
    return {
        name: sum(values[name] for values in found)
        for name in OPERATION_COUNTERS
        if all(name in values for values in found)
    }


def _bytes(mount: MountedNfs) -> dict[str, int]:
    return {name: mount.bytes[name] for name in BYTE_COUNTERS if name in mount.bytes}
