"""Samples with NFS mounts beside the disks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from collectors.latency.heat_map import bucket_of
from collectors.model import MISSING, Histograms, Rows, Sample, Schema, Table
from collectors.tables.nfs.mountstats import parse_mountstats
from collectors.tables.nfs.reader import NfsRow, nfs_values, operation_rows, transport_rows
from collectors.tables.nfs.schema import (
    LATENCY_SCALE,
    LATENCY_SERIES,
    NFS_LATENCY,
    NFS_OPERATION,
    NFS_SLOW,
    NFS_TRANSPORT,
    latency_key,
)
from engine.replacing import replace
from tests.fake_nfs import FakeMount

LATENCY_US = {"READ": (20, 1400, 1500), "WRITE": (900, 3500, 4500)}
"""Queue, RTT and execute time of all calls but one in a hundred, which takes twice as long."""
HOSTILE = "/mnt/red\x1b[31m[b]"


def with_nfs(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """The samples with a mount of which one of four transports does most, a slow one, and one with a hostile name."""
    rows: dict[str, Rows] = {}
    return tuple(
        replace(each, tables={**each.tables, **dict(_tables(tick, rows))}) for tick, each in enumerate(samples)
    )


def with_nfs_latencies(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """The same with the times of single calls of the first mount, over two of its transports."""
    mount = parse_mountstats(_mounts(0)[0].text)[0].key().mount
    places = [(operation, number) for operation in LATENCY_US for number in (1, 2)]
    keys = tuple(latency_key(mount, operation, str(number)) for operation, number in places)
    rows = Rows(keys, tuple(f"/mnt/fast {operation} {number}" for operation, number in places))
    times_us = np.array([LATENCY_US[operation] for operation, _ in places], np.uint64)
    table = Table(
        NFS_LATENCY, rows, np.column_stack([np.full(4, 100), times_us * 101 * 1000, times_us * 2000]).astype(np.uint64)
    )
    histograms = _histograms(rows, [operation for operation, _ in places], times_us)
    return tuple(
        replace(
            each,
            tables={**each.tables, NFS_LATENCY.name: table},
            histograms={**each.histograms, NFS_LATENCY.name: histograms},
        )
        for each in with_nfs(samples)
    )


def with_slow_calls(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """The same with the slowest of these calls: a write, and a read that its process ended."""
    ranks = Rows(("1", "2"), ("1", "2"))
    no_process = [int(MISSING)] * 3
    return tuple(
        replace(each, tables={**each.tables, NFS_SLOW.name: Table(NFS_SLOW, ranks, np.array(calls, np.uint64))})
        for each in with_nfs_latencies(samples)
        for calls in [
            [
                [each.monotonic_ns, 2, 1_000_000, 800_000_000, 810_000_000, 0xBEEF, *no_process],
                [each.monotonic_ns, 0, 1_000_000, 500_000_000, 510_000_000, 0xCAFE, 4711, 0x6464, 0],
            ]
        ]
    )


def _histograms(
    rows: Rows, operations: Sequence[str], times_us: np.ndarray[tuple[int, int], np.dtype[np.uint64]]
) -> Histograms:
    cells = [
        (row, LATENCY_SERIES.index(f"{part}{operation.lower()}"), times_us[row, position] * factor, count)
        for row, operation in enumerate(operations)
        for position, part in enumerate(("queue_", "rtt_", ""))
        for factor, count in ((1, 98), (2, 2))
    ]
    row, series, us, count = (np.array(column) for column in zip(*cells, strict=True))
    bucket = bucket_of(LATENCY_SCALE, us * 1000.0)
    return Histograms(
        LATENCY_SCALE,
        rows,
        LATENCY_SERIES,
        row.astype(np.uint32),
        series.astype(np.uint8),
        bucket.astype(np.uint16),
        count.astype(np.uint64),
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
