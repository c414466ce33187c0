"""Samples with exact time and I/O by process beside the disks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collectors.model import MISSING, Histograms, Rows, Sample
from collectors.tables.block.schema import TRACE, TRACER
from collectors.tables.process_io.schema import (
    PROCESS_IO,
    PROCESS_SCALE,
    PROCESS_SERIES,
    Submitter,
    process_key,
    row_key,
    submitter_name,
    workqueue_key,
)
from engine.replacing import replace
from tests.app.sources import SECOND_NS, table

HOSTILE = "ev\x1b[31mil[b]"
WHO = (
    # Kind, pid, command, disk, cgroup, reads, writes, microseconds each.
    (Submitter.PROCESS, 101, "postgres", -1, 3, 900, 100, 400),
    (Submitter.PROCESS, 202, "rsync", -1, 4, 300, 0, 900),
    (Submitter.PROCESS, 202, "rsync", 0, 4, 0, 300, 2000),
    (Submitter.WORKQUEUE, 0, "writeback", -1, 1, 0, 120, 5000),
    (Submitter.KERNEL, 77, "jbd2/sdc1-8", -1, 1, 0, 7, 1500),
    (Submitter.PROCESS, 303, HOSTILE, -1, 1, 1, 0, 100),
)
"""In a second."""


def with_processes(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """The samples with processes on the last disk, of which one is on the first, too."""
    disks = samples[0].tables["disk"].rows
    keys = []
    for kind, pid, command, disk, *_ in WHO:
        submitter = workqueue_key(command) if kind == Submitter.WORKQUEUE else process_key(pid, _started(pid))
        keys.append(row_key(disks.keys[disk], submitter))
    names = tuple(submitter_name(kind, pid, command) for kind, pid, command, *_ in WHO)
    rows = Rows(tuple(keys), names)
    return tuple(_with_processes(sample, tick, rows, disks) for tick, sample in enumerate(samples))


def _started(pid: int) -> int:
    """As in the table of processes of `make_samples`."""
    return {101: 5, 202: 6}.get(pid, 9)


def _with_processes(sample: Sample, tick: int, rows: Rows, disks: Rows) -> Sample:
    reads, writes, each_us = (np.array([one[at] for one in WHO], np.uint64) for at in (5, 6, 7))
    latency_ns = (reads + writes) * each_us * 1000
    processes = table(
        PROCESS_IO,
        rows,
        pid=[one[1] or int(MISSING) for one in WHO],
        kind=[int(one[0]) for one in WHO],
        cgroup=[one[4] for one in WHO],
        reads=reads,
        writes=writes,
        read_bytes=reads * 8192,
        write_bytes=writes * 65536,
        latency_ns=latency_ns,
    )
    of_disk = [[at for at, one in enumerate(WHO) if one[3] % len(disks) == disk] for disk in range(len(disks))]
    trace = table(
        TRACE,
        disks,
        **dict.fromkeys(("others", "queue_read_ns", "queue_write_ns", "service_read_ns", "tag_waits"), 0),
        **dict.fromkeys(("tag_wait_ns", "in_flight_now", "in_driver_now", "unstamped", "errors"), 0),
        reads=[tick * int(reads[of].sum()) for of in of_disk],
        writes=[tick * int(writes[of].sum()) for of in of_disk],
        read_bytes=[tick * int(reads[of].sum()) * 8192 for of in of_disk],
        write_bytes=[tick * int(writes[of].sum()) * 65536 for of in of_disk],
        service_write_ns=[tick * int(latency_ns[of].sum()) for of in of_disk],
        busy_ns=[tick * SECOND_NS // 2 for _ in of_disk],
    )
    clock = table(
        TRACER,
        Rows(("tracer",), ("tracer",)),
        **dict.fromkeys((column.id for column in TRACER.columns), 0),
    )
    clock.values[0, TRACER.index("started_ns")] = 1
    clock.values[0, TRACER.index("clock_ns")] = sample.monotonic_ns
    tables = {**sample.tables, TRACE.name: trace, TRACER.name: clock, PROCESS_IO.name: processes}
    return replace(sample, tables=tables, histograms={**sample.histograms, PROCESS_IO.name: _histograms(rows, each_us)})


def _histograms(rows: Rows, each_us: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> Histograms:
    units = each_us * 1000 // PROCESS_SCALE.unit_ns
    octave = np.maximum(np.floor(np.log2(np.maximum(units, 1))).astype(np.int64) - PROCESS_SCALE.sub_bits, 0)
    bucket = (octave << PROCESS_SCALE.sub_bits) + (units.astype(np.int64) >> octave)
    return Histograms(
        PROCESS_SCALE,
        rows,
        PROCESS_SERIES,
        np.arange(len(rows), dtype=np.uint32),
        np.zeros(len(rows), np.uint8),
        bucket.astype(np.uint16),
        np.array([one[5] + one[6] for one in WHO], np.uint64),
    )
