"""Samples of a fleet: hosts beside their disks, one of them missing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collectors.model import MISSING, Rows, Sample
from collectors.tables.fleet.schema import FLEET
from engine.replacing import replace
from tests.app.sources import table

HOSTS = Rows(("db1", "db2", "db3"), ("db1", "db2", "db3"))
_READS = np.array((1500, 400, 0), np.uint64)


def with_hosts(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """The samples with three hosts, of which the last does not answer."""
    return tuple(_with_hosts(sample, tick) for tick, sample in enumerate(samples))


def _with_hosts(sample: Sample, tick: int) -> Sample:
    hosts = table(
        FLEET,
        HOSTS,
        sampled_ns=sample.monotonic_ns,
        disks=4,
        reads=_READS * tick,
        writes=_READS // 2 * tick,
        read_bytes=_READS * 8192 * tick,
        write_bytes=_READS * 4096 * tick,
        read_ms=_READS * tick,
        write_ms=_READS * tick,
        clock_bound_ns=250_000,
        round_trip_ns=500_000,
        state=2,
    )
    hosts.values[2] = MISSING
    return replace(sample, tables={**sample.tables, FLEET.name: hosts})
