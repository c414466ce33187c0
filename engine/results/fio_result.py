"""Results as fio's JSON output, one document for each set of knobs, as fio has one for each of its runs."""

from __future__ import annotations

import bisect
import itertools
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine.errors import UsageError
from engine.job.fixed_settings import rw_word
from engine.job.formats.fio_options import fio_options
from engine.job.sizes import format_blocks, format_duration
from engine.job.spec import Arrival, JobSpec, Knobs
from engine.replacing import replace
from engine.results.histogram import Latencies, middles_ns
from engine.results.measured import (
    DirectionDelta,
    LoadInterval,
    Measured,
    ProcessUse,
    combine,
    combine_splits,
    share_between,
)
from engine.results.result import EpochResult, RunResult
from engine.version import version

Figures = dict[str, object]

_PERCENTILES = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)
_STEPS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
_UNITS_NS = {"latency_ns": 1, "latency_us": 1_000, "latency_ms": 1_000_000}
_LONGEST = 2000
"""Milliseconds; what is above is one share."""


def direction_figures(
    measured: Measured, duration_s: float, growths: Sequence[tuple[DirectionDelta, float]], short_ios: int = 0
) -> Figures:
    """Write one direction; `growths` are its intervals with their lengths.

    `lat_ns` are latencies as lunscope counts them, in an open loop from the intended start; `clat_ns` are always from
    submit to reap. Submission is not timed separately, so `slat_ns` has an N of 0. As in fio what was never measured is
    0 beside `N` or samples of 0, and every percentile is that of its rank, however few the I/Os: N says how many.
    """
    bytes_per_s = measured.bytes / duration_s if duration_s else 0.0
    share = 100 * bytes_per_s / 1024 / mean if (mean := _mean("bw", growths)) else 0.0
    return {
        "io_bytes": measured.bytes,
        "io_kbytes": measured.bytes // 1024,
        "bw_bytes": round(bytes_per_s),
        "bw": round(bytes_per_s / 1024),
        "iops": measured.ios / duration_s if duration_s else 0.0,
        "runtime": round(duration_s * 1000),
        "total_ios": measured.ios,
        "short_ios": short_ios,
        "drop_ios": 0,
        "slat_ns": _NO_LATENCIES,
        "clat_ns": _latencies(measured if measured.service is None else measured.service),
        "lat_ns": _latencies(measured),
        **_spread("bw", growths),
        "bw_agg": min(share, 100.0),
        **_spread("iops", growths),
    }


_NO_LATENCIES: Figures = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}


def _latencies(of: Measured | Latencies) -> Figures:
    """Write a distribution with its buckets, as fio's json+ has them: those of both are the same."""
    ios = int(of.counts.sum())
    mean_ns = of.mean_ns or 0.0
    figures: Figures = {
        "min": of.least_ns or 0,
        "max": of.largest_ns or 0,
        "mean": mean_ns,
        "stddev": _deviation_ns(of.buckets, of.counts, mean_ns),
        "N": ios,
    }
    if ios:
        least, largest = of.least_ns or 0, of.largest_ns or 0
        ranks = ((percent, _of_rank(of.buckets, of.counts, percent)) for percent in _PERCENTILES)
        figures["percentile"] = {f"{percent:.6f}": round(min(max(at, least), largest)) for percent, at in ranks}
        figures["bins"] = bins(dict(zip(of.buckets.tolist(), of.counts.tolist(), strict=True)))
    return figures


def _of_rank(buckets: NDArray[np.uint16], counts: NDArray[np.uint64], percent: float) -> float:
    rank = max(math.ceil(int(counts.sum()) * percent / 100 - 1e-9), 1)
    position = int(np.searchsorted(np.cumsum(counts), rank))
    return float(middles_ns(buckets[position : position + 1])[0])


MOST_BINS = 29 * 64
"""FIO_IO_U_PLAT_NR of fio: what took longer than 17 s is in its last bucket."""
_BIN_BITS = 6


def bins(times: Mapping[int, int]) -> dict[str, int]:
    """Name buckets as fio does, by the time in their middle (plat_idx_to_val of fio's stat.c); keys of json+."""
    found: dict[str, int] = {}
    for bucket, count in sorted(times.items()):
        name = str(_bin_ns(min(bucket, MOST_BINS - 1)))
        found[name] = found.get(name, 0) + count
    return found


def _bin_ns(bucket: int) -> int:
    octave = max((bucket >> _BIN_BITS) - 1, 0)
    if not octave:
        return bucket
    return ((1 << _BIN_BITS) + (bucket & ((1 << _BIN_BITS) - 1)) << octave) + (1 << octave >> 1)


def _deviation_ns(buckets: NDArray[np.uint16], counts: NDArray[np.uint64], mean_ns: float) -> float:
    """Take the standard deviation from the histogram: its buckets are at most 1.6 % wide."""
    if not len(counts):
        return 0.0
    squares = (middles_ns(buckets) - mean_ns) ** 2
    return math.sqrt(float(np.average(squares, weights=counts.astype(np.float64))))


_Growths = Sequence[tuple[DirectionDelta, float]]
_COUNTS: dict[str, Callable[[DirectionDelta], float]] = {
    "bw": lambda growth: growth.bytes / 1024,
    "iops": lambda growth: growth.ios,
}


def _mean(what: str, growths: _Growths) -> float:
    """Take the mean over the time that the intervals are about, which need not be of one length."""
    length_s = sum(length for _, length in growths)
    return sum(_COUNTS[what](growth) for growth, _ in growths) / length_s if length_s else 0.0


def _spread(what: str, growths: _Growths) -> Figures:
    values = [_COUNTS[what](growth) / length_s for growth, length_s in growths]
    return {
        f"{what}_min": round(min(values, default=0)),
        f"{what}_max": round(max(values, default=0)),
        f"{what}_mean": _mean(what, growths),
        f"{what}_{'dev' if what == 'bw' else 'stddev'}": statistics.stdev(values) if len(values) > 1 else 0.0,
        f"{what}_samples": len(values),
    }


def joined(intervals: Sequence[LoadInterval]) -> tuple[LoadInterval, ...]:
    """Add what is shorter than half of the others to the interval before it: a turn or the end cut it off."""
    if not intervals:
        return ()
    least_s = statistics.median(each.length_s for each in intervals) / 2
    found = [intervals[0]]
    for each in intervals[1:]:
        last = found[-1]
        follows = last.epoch == each.epoch and abs(each.end_s - each.length_s - last.end_s) < least_s
        if follows and min(each.length_s, last.length_s) < least_s:
            found[-1] = last + each
        else:
            found.append(each)
    return tuple(found)


def latency_shares(measured: Measured) -> Figures:
    """Share of the I/Os in percent by latency: each key is the upper end of its range, in the unit of its table."""
    lower_ns, shares = 0, dict[str, object]()
    for name, unit_ns in _UNITS_NS.items():
        steps = (*_STEPS, _LONGEST) if name == "latency_ms" else _STEPS
        bounds = [lower_ns, *(step * unit_ns for step in steps)]
        table = {str(step): 0.0 for step in steps}
        for step, (lower, upper) in zip(steps, itertools.pairwise(bounds), strict=True):
            table[str(step)] = share_between(measured, lower, upper) or 0.0
        lower_ns = max(bounds)
        shares[name] = table
    last = shares["latency_ms"]
    assert isinstance(last, dict)
    last[f">={_LONGEST}"] = share_between(measured, lower_ns, math.inf) or 0.0
    return shares


class KnobSetting(Struct, frozen=True, eq=False):
    """All epochs of a run that had the same knobs."""

    result: RunResult
    epochs: tuple[EpochResult, ...]
    intervals: tuple[LoadInterval, ...]

    @property
    def name(self) -> RunName:
        """Order, depth and jobs, by which fio-plot distinguishes runs."""
        return run_name(self.result.about.job, self.epochs[0].knobs)


class RunName(Struct, frozen=True):
    """What names a run among those of a sweep, in the words of fio."""

    read_write: str
    depth: int
    """iodepth, of each of its jobs: here of each target."""
    jobs: int
    """numjobs: here the targets in use, one if they share the depth."""

    @property
    def document(self) -> str:
        """Name of the file of its figures."""
        return f"{self.read_write}-{self.depth}-{self.jobs}.json"

    def log(self, what: str) -> str:
        """Name of the file of one figure by interval."""
        return f"{self.read_write}-iodepth-{self.depth}-numjobs-{self.jobs}_{what}.1.log"


def run_name(job: JobSpec, knobs: Knobs) -> RunName:
    """Name a run with these knobs."""
    jobs = 1 if job.total_queue_depth else knobs.stripe_width
    return RunName(rw_word(job.access, knobs.read_pct), knobs.queue_depth, jobs)


def settings_of(result: RunResult, intervals: Sequence[LoadInterval]) -> tuple[KnobSetting, ...]:
    """Put epochs of equal knobs together; those in which nothing was measured are left out."""
    by_knobs: dict[object, list[EpochResult]] = {}
    for epoch in result.epochs:
        if epoch.split.total.ios:
            by_knobs.setdefault(epoch.knobs, []).append(epoch)
    return tuple(
        KnobSetting(
            result, tuple(epochs), joined([each for each in intervals if each.epoch in {one.index for one in epochs}])
        )
        for epochs in by_knobs.values()
    )


def fio_document(setting: KnobSetting, disks: Sequence[Figures] = ()) -> Figures:
    """Everything fio's JSON has, ready for json.dumps; `disks` are those below the targets, over the whole run."""
    now_s = time.time()
    return {
        "fio version": f"lunscope-{version()}",
        "timestamp": int(now_s),
        "timestamp_ms": int(now_s * 1000),
        "time": time.ctime(now_s),
        "global options": {},
        "jobs": [_job(setting)],
        "disk_util": list(disks),
    }


def _job(setting: KnobSetting) -> Figures:
    split = combine_splits([epoch.split for epoch in setting.epochs])
    duration_s = sum(epoch.duration_s for epoch in setting.epochs)
    reads = [(each.read, each.length_s) for each in setting.intervals]
    writes = [(each.write, each.length_s) for each in setting.intervals]
    seen_s = sum(each.length_s for each in setting.intervals)
    used = sum((each.used for each in setting.intervals), ProcessUse())
    return {
        "jobname": setting.result.about.job.name,
        "groupid": 0,
        "error": next((error.errno for error in setting.result.errors), 0),
        "eta": 0,
        "elapsed": round(setting.result.about.elapsed_s),
        "job options": _options(setting),
        "read": direction_figures(split.read, duration_s, reads, _short(setting, "read")),
        "write": direction_figures(split.write, duration_s, writes, _short(setting, "write")),
        "trim": direction_figures(combine([]), 0.0, []),
        "sync": _flushes(setting),
        "job_runtime": round(duration_s * 1000),
        # 100 is one processor; of the whole process, with what little the monitor needs.
        "usr_cpu": 100 * used.user_s / seen_s if seen_s else 0.0,
        "sys_cpu": 100 * used.system_s / seen_s if seen_s else 0.0,
        "ctx": used.context_switches,
        "majf": used.major_faults,
        "minf": used.minor_faults,
        **_depths(setting),
        **latency_shares(split.total),
        "latency_depth": setting.name.depth,
        "latency_target": 0,
        "latency_percentile": 100.0,
        "latency_window": 0,
    }


def _short(setting: KnobSetting, direction: str) -> int:
    """Transfers that ended early, of the whole run: an engine counts them as errors without a number."""
    return sum(error.ios for error in setting.result.errors if not error.errno and error.direction == direction)


_DEPTHS = (1, 2, 4, 8, 16, 32, 64)


def _depths(setting: KnobSetting) -> Figures:
    """Write the shares of I/Os by how many were outstanding, which is known where a closed loop holds the depth.

    How many were submitted or reaped at once is not counted: all of these are 0.
    """
    job, knobs = setting.result.about.job, setting.epochs[0].knobs
    held = job.arrival is Arrival.CLOSED and knobs.rate_iops is None and not job.think_s
    names = [*map(str, _DEPTHS[:-1]), f">={_DEPTHS[-1]}"]
    level = dict.fromkeys(names, 0.0)
    if held:
        level[names[bisect.bisect_right(_DEPTHS, setting.name.depth) - 1]] = 100.0
    none = dict.fromkeys(("0", "4", "8", "16", "32", "64", ">=64"), 0.0)
    return {"iodepth_level": level, "iodepth_submit": none, "iodepth_complete": none}


def _options(setting: KnobSetting) -> dict[str, str]:
    """Say what ran as options of fio, as far as it has them; depth and jobs as the file's name says them."""
    knobs = setting.epochs[0].knobs
    job = replace(setting.result.about.job, knobs=knobs)
    try:
        options = {name: value or "1" for name, value in fio_options(job, knobs.stripe_width).items()}
    except UsageError:
        options = {"rwmixread": f"{knobs.read_pct:g}"}
        options |= {} if job.runtime_s is None else {"runtime": format_duration(job.runtime_s)}
    own = {"name": job.name, "rw": setting.name.read_write, "bs": format_blocks(knobs.blocks)}
    return options | own | {"iodepth": str(setting.name.depth), "numjobs": str(setting.name.jobs)}


def _flushes(setting: KnobSetting) -> Figures:
    flushes = [epoch.fsyncs for epoch in setting.epochs]
    ios, latency_ns = sum(each.ios for each in flushes), sum(each.latency_sum_ns for each in flushes)
    largest_ns = max(each.largest_ns for each in flushes)
    lat = {**_NO_LATENCIES, "max": largest_ns, "mean": latency_ns / ios if ios else 0.0, "N": ios}
    return {"total_ios": ios, "lat_ns": lat}
