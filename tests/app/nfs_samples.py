"""Samples with NFS mounts beside the disks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from collectors.model import Rows, Sample, Schema, Table
from collectors.tables.nfs.mountstats import parse_mountstats
from collectors.tables.nfs.reader import NfsRow, nfs_values, operation_rows, transport_rows
from collectors.tables.nfs.schema import NFS_OPERATION, NFS_TRANSPORT
from tests.fake_nfs import FakeMount

HOSTILE = "/mnt/red\x1b[31m[b]"


def with_nfs(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """The samples with a mount of which one of four transports does most, a slow one, and one with a hostile name."""
    rows: dict[str, Rows] = {}
    return tuple(
        replace(each, tables={**each.tables, **dict(_tables(tick, rows))}) for tick, each in enumerate(samples)
    )


def _tables(tick: int, rows: dict[str, Rows]) -> Iterator[tuple[str, Table]]:
    mounts = parse_mountstats("".join(mount.text for mount in _mounts(tick)))
    now = [{"slots_now": 12, "slots_limit": 65536, "pending_now": 4, "online": 1}] * 4
    yield _table(NFS_OPERATION, [row for each in mounts for row in operation_rows(each)], rows)
    yield _table(NFS_TRANSPORT, [row for each in mounts for row in transport_rows(each, now)], rows)


def _table(schema: Schema, found: list[NfsRow], rows: dict[str, Rows]) -> tuple[str, Table]:
    shared = rows.setdefault(schema.name, Rows(tuple(row.key for row in found), tuple(row.name for row in found)))
    return schema.name, Table(schema, shared, nfs_values(schema, found))


def _mounts(tick: int) -> tuple[FakeMount, ...]:
    n = tick + 1
    reads = f"{2000 * n} {2002 * n} 0 {300_000 * n} {131_072_000 * n} {1000 * n} {3000 * n} {4200 * n} 0"
    writes = f"{500 * n} {500 * n} 0 {65_536_000 * n} {70_000 * n} {4000 * n} {2000 * n} {6200 * n} 1"
    slow = f"{50 * n} {50 * n} {n} {7500 * n} {6_553_600 * n} {100 * n} {4900 * n} {5000 * n} {2 * n}"
    even, busy = (
        f"tcp 0 0 2 0 0 {sends * n} {sends * n} 0 {6 * sends * n} 0 16 {sends * n // 2} {5 * sends * n}"
        for sends in (300, 1600)
    )
    return (
        FakeMount("/mnt/fast", transports=(busy, even, even, even), operations={"READ": reads, "WRITE": writes}),
        FakeMount("/mnt/slow", version="3", operations={"READ": slow, "COMMIT": "0 0 0 0 0 0 0 0 0"}),
        FakeMount(HOSTILE, transports=(), operations={"GETATTR": "5 5 0 500 500 1 2 3 0"}),
    )
