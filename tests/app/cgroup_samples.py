"""Samples with control groups beside the disks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collectors.model import Rows, Sample
from collectors.tables.cgroup.schema import CGROUP, row_key, row_name
from engine.replacing import replace
from tests.app.sources import table

PATHS = ("/", "/system.slice", "/system.slice/db.service", "/system.slice/backup.service", "/idle.slice")
HOSTILE = "/red\x1b[31m[b]"
_READS = np.array((1500, 1500, 1200, 300, 0, 10), np.uint64)


def with_cgroups(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """The samples with groups on the last disk, of which the backup is at its limit."""
    keys, names = samples[0].tables["disk"].rows.keys, samples[0].tables["disk"].rows.names
    paths = (*PATHS, HOSTILE)
    rows = Rows(
        tuple(row_key(number, keys[-1], path) for number, path in enumerate(paths, start=1)),
        tuple(row_name(path, names[-1]) for path in paths),
    )
    return tuple(_with_cgroups(sample, tick, rows) for tick, sample in enumerate(samples))


def _with_cgroups(sample: Sample, tick: int, rows: Rows) -> Sample:
    reads = _READS * tick
    groups = table(
        CGROUP,
        rows,
        read_bytes=reads * 8192,
        write_bytes=0,
        reads=reads,
        writes=0,
        discard_bytes=0,
        discards=0,
        psi_some_us=np.array((300, 300, 100, 900, 0, 0)) * 1000 * tick,
        psi_full_us=np.array((100, 100, 50, 800, 0, 0)) * 1000 * tick,
    )
    groups.values[3, CGROUP.index("read_limit_ios")] = 300
    return replace(sample, tables={**sample.tables, CGROUP.name: groups})
