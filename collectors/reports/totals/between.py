"""Totals between two samples: I/Os, bytes, errors; and the largest latency of the samples in between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from collectors.kernel.identity import SECTOR_BYTES
from collectors.model import MISSING, Sample, Table
from collectors.reports.totals.level import CountSubject, device_keys, path_keys
from collectors.tables.block.schema import DISK, PATH_ERRORS, TRACE

_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class LevelTotals:
    """Totals since counters were cleared; None is missing."""

    since_ns: int
    """Wall time of the sample that they count from."""
    elapsed_s: float
    reads: int | None
    writes: int | None
    read_bytes: int | None
    write_bytes: int | None
    errors: int | None
    timeouts: int | None
    retries: int | None
    failovers: int | None
    max_latency_ns: int | None
    """Largest latency; exact time only."""
    latency_reason: str = "no I/O since, or no exact time"
    """Why there is no largest latency, if there is none."""


def level_totals(base: Sample, now: Sample, subject: CountSubject, max_latency_ns: int | None) -> LevelTotals:
    """Add up what a subject did between two samples.

    Args:
        base: sample at the time of clearing.
        now: a later sample of the same source; devices added in between count from 0, those removed are left out.
        subject: what to add up.
        max_latency_ns: largest latency in between, None if unknown.
    """
    disks = device_keys(subject, now.topology)
    paths = path_keys(subject, now.topology)
    io = [
        _added(base.tables.get(DISK.name), now.tables.get(DISK.name), disks, column)
        for column in ("reads", "writes", "read_sectors", "write_sectors")
    ]
    errors = [
        _added(base.tables.get(PATH_ERRORS.name), now.tables.get(PATH_ERRORS.name), paths, column)
        for column in ("errors", "timeouts", "retries", "failovers")
    ]
    read_bytes, write_bytes = (None if sectors is None else sectors * SECTOR_BYTES for sectors in io[2:])
    elapsed_s = (now.monotonic_ns - base.monotonic_ns) / _NS
    return LevelTotals(
        since_ns=base.time_ns,
        elapsed_s=elapsed_s,
        reads=io[0],
        writes=io[1],
        read_bytes=read_bytes,
        write_bytes=write_bytes,
        errors=errors[0],
        timeouts=errors[1],
        retries=errors[2],
        failovers=errors[3],
        max_latency_ns=max_latency_ns,
    )


def largest_latency_ns(samples: Iterable[Sample], subject: CountSubject) -> int | None:
    """Return the largest latency of the intervals that ended with these samples; None without exact time."""
    return max((value for sample in samples for value in _peaks(sample, subject)), default=None)


def _peaks(sample: Sample, subject: CountSubject) -> Iterator[int]:
    table = sample.tables.get(TRACE.name)
    if table is None:
        return
    keys = dict.fromkeys((*device_keys(subject, sample.topology), *path_keys(subject, sample.topology)))
    rows = [row for key in keys if (row := table.rows.positions.get(key)) is not None]
    for value in table.column("latency_max_ns")[rows].tolist():
        if value != MISSING and value:
            yield value


def _added(before: Table | None, now: Table | None, keys: Sequence[str], column: str) -> int | None:
    """Sum the increase of a column over rows; None if no row has a count, or one went back."""
    if now is None:
        return None
    old = None if before is None else before.column(column)
    new = now.column(column)
    total = None
    for key in keys:
        row = now.rows.positions.get(key)
        if row is None or new[row] == MISSING:
            continue
        old_row = None if before is None else before.rows.positions.get(key)
        start = 0 if old is None or old_row is None or old[old_row] == MISSING else int(old[old_row])
        if int(new[row]) < start:
            return None
        total = (total or 0) + int(new[row]) - start
    return total
