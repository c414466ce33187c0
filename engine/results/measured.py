"""What was measured of some I/Os, by direction and together; all of it adds up over epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine.backend.protocol import Cells, EpochStats
from engine.results.histogram import Latencies, combine_latencies, merge, middles_ns, percentile_ns


class DirectionDelta(Struct, frozen=True):
    """I/Os of one direction that completed in an interval."""

    ios: int
    bytes: int
    latency_ns: int
    """Sum of their latencies."""
    times: Mapping[int, int] = {}
    """Buckets of engine.results.histogram with their counts, of the times from submit to reap; empty if not kept."""

    def __add__(self, later: DirectionDelta) -> DirectionDelta:
        times = dict(self.times)
        for bucket, count in later.times.items():
            times[bucket] = times.get(bucket, 0) + count
        sums = (self.ios + later.ios, self.bytes + later.bytes, self.latency_ns + later.latency_ns)
        return DirectionDelta(*sums, times)


class ProcessUse(Struct, frozen=True):
    """What the process used, all its threads together (getrusage(2))."""

    user_s: float = 0.0
    system_s: float = 0.0
    context_switches: int = 0
    major_faults: int = 0
    minor_faults: int = 0

    def __add__(self, later: ProcessUse) -> ProcessUse:
        return ProcessUse(*(getattr(self, name) + getattr(later, name) for name in self.__struct_fields__))


class LoadInterval(Struct, frozen=True):
    """One interval inside an epoch."""

    epoch: int
    end_s: float
    """Time of its end, from the first reading of this load on."""
    length_s: float
    read: DirectionDelta
    write: DirectionDelta
    used: ProcessUse

    def __add__(self, later: LoadInterval) -> LoadInterval:
        """Join the interval that follows this one."""
        length_s = self.length_s + later.length_s
        sums = self.read + later.read, self.write + later.write, self.used + later.used
        return LoadInterval(self.epoch, later.end_s, length_s, *sums)


class LevelStats(Struct, frozen=True, eq=False):
    """Statistics of one level as engine.results.measured reads them: rows as EpochStats has them of targets."""

    counts: NDArray[np.uint64]
    peaks: NDArray[np.uint64]
    cells: Cells


def path_level(stats: EpochStats) -> LevelStats:
    """Read the paths of all targets, in the order of targets; their per-second maxima are not collected."""
    rows = len(stats.path_counts)
    return LevelStats(stats.path_counts, np.zeros((rows + 1, 3, 2), np.uint64), stats.path_cells)


def logical_level(stats: EpochStats) -> LevelStats:
    """Read the logical I/Os, which are one row."""
    return LevelStats(stats.logical_counts, stats.logical_peaks, stats.logical_cells)


READ, WRITE, BOTH = 0, 1, 2
_IOS, _BYTES, _LATENCY, _LEAST, _LARGEST, _ERRORS = range(6)
_SERVICE, _LEAST_SERVICE, _LARGEST_SERVICE = range(3)


class Measured(Struct, frozen=True, eq=False):
    """Statistics of the I/Os of one direction or both, on one target or all, over one epoch or several."""

    ios: int
    bytes: int
    errors: int
    latency_sum_ns: int
    least_ns: int | None
    largest_ns: int | None
    peak_sum_ns: int
    """Sum of the per-second maxima."""
    peak_seconds: int
    """Seconds that had any I/O."""
    buckets: NDArray[np.uint16]
    """Buckets of engine.results.histogram that hold any I/O, ascending."""
    counts: NDArray[np.uint64]
    service: Latencies | None = None
    """Times from submit to reap, where latencies count from an intended start; None where they are the same."""

    @property
    def mean_ns(self) -> float | None:
        """Mean latency."""
        return self.latency_sum_ns / self.ios if self.ios else None

    @property
    def average_peak_ns(self) -> float | None:
        """Mean of the per-second maxima: the latency that hurts applications."""
        return self.peak_sum_ns / self.peak_seconds if self.peak_seconds else None

    def percentile_ns(self, percent: float) -> float | None:
        """Latency that `percent` of the I/Os do not exceed; None with too few I/Os."""
        value = percentile_ns(self.buckets, self.counts, percent)
        if value is None or self.least_ns is None or self.largest_ns is None:
            return None
        return min(max(value, float(self.least_ns)), float(self.largest_ns))


def measure(stats: EpochStats | LevelStats, target: int | None, direction: int) -> Measured:
    """Cut the I/Os of one target (None: all) and one direction (or BOTH) out of an epoch."""
    counts = stats.counts[slice(None) if target is None else slice(target, target + 1)]
    counts = (counts if direction == BOTH else counts[:, direction : direction + 1]).reshape(-1, 6)
    used = counts[counts[:, _IOS] > 0]
    buckets, bucket_counts = _cells_of(stats.cells, target, direction)
    peak_sum_ns, peak_seconds = stats.peaks[-1 if target is None else target, direction]
    return Measured(
        ios=int(counts[:, _IOS].sum()),
        bytes=int(counts[:, _BYTES].sum()),
        errors=int(counts[:, _ERRORS].sum()),
        latency_sum_ns=int(counts[:, _LATENCY].sum()),
        least_ns=int(used[:, _LEAST].min()) if len(used) else None,
        largest_ns=int(used[:, _LARGEST].max()) if len(used) else None,
        peak_sum_ns=int(peak_sum_ns),
        peak_seconds=int(peak_seconds),
        buckets=buckets,
        counts=bucket_counts,
        service=_service(stats, target, direction),
    )


def _service(stats: EpochStats | LevelStats, target: int | None, direction: int) -> Latencies | None:
    if isinstance(stats, LevelStats):
        return None
    buckets, counts = _cells_of(stats.service_cells, target, direction)
    if not len(counts):
        return None
    services = stats.services[slice(None) if target is None else slice(target, target + 1)]
    services = (services if direction == BOTH else services[:, direction : direction + 1]).reshape(-1, 3)
    used = services[services[:, _LARGEST_SERVICE] > 0]
    return Latencies(
        sum_ns=int(used[:, _SERVICE].sum()),
        least_ns=int(used[:, _LEAST_SERVICE].min()),
        largest_ns=int(used[:, _LARGEST_SERVICE].max()),
        buckets=buckets,
        counts=counts,
    )


def _cells_of(cells: Cells, target: int | None, direction: int) -> tuple[NDArray[np.uint16], NDArray[np.uint64]]:
    targets, directions, buckets, counts = cells
    wanted = np.ones(len(counts), bool)
    if target is not None:
        wanted &= targets == target
    if direction != BOTH:
        wanted &= directions == direction
    return merge(buckets[wanted], counts[wanted])


def combine(parts: Sequence[Measured]) -> Measured:
    """Add up epochs, or any other parts that share no second of any target."""
    least = [part.least_ns for part in parts if part.least_ns is not None]
    largest = [part.largest_ns for part in parts if part.largest_ns is not None]
    buckets, counts = merge(
        np.concatenate([part.buckets for part in parts] or [np.zeros(0, np.uint16)]),
        np.concatenate([part.counts for part in parts] or [np.zeros(0, np.uint64)]),
    )
    return Measured(
        ios=sum(part.ios for part in parts),
        bytes=sum(part.bytes for part in parts),
        errors=sum(part.errors for part in parts),
        latency_sum_ns=sum(part.latency_sum_ns for part in parts),
        least_ns=min(least, default=None),
        largest_ns=max(largest, default=None),
        peak_sum_ns=sum(part.peak_sum_ns for part in parts),
        peak_seconds=sum(part.peak_seconds for part in parts),
        buckets=buckets,
        counts=counts,
        service=_combined_service(parts),
    )


def _combined_service(parts: Sequence[Measured]) -> Latencies | None:
    services = [part.service for part in parts if part.service is not None]
    return combine_latencies(services) if services else None


class Split(Struct, frozen=True, eq=False):
    """Reads, writes, and both."""

    read: Measured
    write: Measured
    total: Measured


def split_of(stats: EpochStats | LevelStats, row: int | None) -> Split:
    """Cut one row (None: all) out of the statistics of an epoch or one of its levels."""
    return Split(measure(stats, row, READ), measure(stats, row, WRITE), measure(stats, row, BOTH))


def combine_splits(parts: Sequence[Split]) -> Split:
    """Add up epochs, or any other parts that share no second."""
    return Split(
        combine([part.read for part in parts]),
        combine([part.write for part in parts]),
        combine([part.total for part in parts]),
    )


def share_between(measured: Measured, lower_ns: float, upper_ns: float) -> float | None:
    """Share of the I/Os, in percent, that took longer than one time and no longer than another; None without any."""
    total = int(measured.counts.sum())
    middles = middles_ns(measured.buckets)
    within = measured.counts[(middles > lower_ns) & (middles <= upper_ns)].sum()
    return 100 * int(within) / total if total else None
