"""Results as fio's JSON output, one document for each set of knobs, as fio has one for each of its runs."""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine.errors import UsageError
from engine.job.formats.fio_options import fio_options
from engine.job.settings import rw_word
from engine.job.sizes import format_blocks, format_duration
from engine.job.spec import JobSpec, Knobs
from engine.replacing import replace
from engine.results.histogram import Latencies, middles_ns
from engine.results.measured import DirectionDelta, LoadInterval, Measured, combine, combine_splits, share_between
from engine.results.result import EpochResult, RunResult
from engine.version import version

Figures = dict[str, object]

_PERCENTILES = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99)
_STEPS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
_UNITS_NS = {"latency_ns": 1, "latency_us": 1_000, "latency_ms": 1_000_000}
_LONGEST = 2000
"""Milliseconds; what is above is one share."""


def direction_figures(
    measured: Measured, duration_s: float, growths: Sequence[tuple[DirectionDelta, float]]
) -> Figures:
    """Write one direction; `growths` are its intervals with their lengths.

    `lat_ns` are latencies as lunscope counts them, in an open loop from the intended start; `clat_ns` are always from
    submit to reap. Submission is not timed separately, so there is no `slat_ns`. Percentiles are left out where there
    are too few I/Os for them. As in fio what was never measured is 0 beside `N` or samples of 0.
    """
    bytes_per_s = measured.bytes / duration_s if duration_s else 0.0
    return {
        "io_bytes": measured.bytes,
        "io_kbytes": measured.bytes // 1024,
        "bw_bytes": round(bytes_per_s),
        "bw": round(bytes_per_s / 1024),
        "iops": measured.ios / duration_s if duration_s else 0.0,
        "runtime": round(duration_s * 1000),
        "total_ios": measured.ios,
        "clat_ns": _latencies(measured if measured.service is None else measured.service),
        "lat_ns": _latencies(measured),
        **_spread("bw", [growth.bytes / length_s / 1024 for growth, length_s in growths]),
        **_spread("iops", [growth.ios / length_s for growth, length_s in growths]),
    }


def _latencies(of: Measured | Latencies) -> Figures:
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
        known = ((percent, of.percentile_ns(percent)) for percent in _PERCENTILES)
        figures["percentile"] = {f"{percent:.6f}": round(value) for percent, value in known if value is not None}
    return figures


def _deviation_ns(buckets: NDArray[np.uint16], counts: NDArray[np.uint64], mean_ns: float) -> float:
    """Take the standard deviation from the histogram: its buckets are at most 1.6 % wide."""
    if not len(counts):
        return 0.0
    squares = (middles_ns(buckets) - mean_ns) ** 2
    return math.sqrt(float(np.average(squares, weights=counts.astype(np.float64))))


def _spread(what: str, values: Sequence[float]) -> Figures:
    return {
        f"{what}_min": round(min(values, default=0)),
        f"{what}_max": round(max(values, default=0)),
        f"{what}_mean": statistics.fmean(values) if values else 0.0,
        f"{what}_{'dev' if what == 'bw' else 'stddev'}": statistics.stdev(values) if len(values) > 1 else 0.0,
        f"{what}_samples": len(values),
    }


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
            result, tuple(epochs), tuple(each for each in intervals if each.epoch in {one.index for one in epochs})
        )
        for epochs in by_knobs.values()
    )


def fio_document(setting: KnobSetting) -> Figures:
    """Everything fio's JSON has that is known, ready for json.dumps."""
    now_s = time.time()
    return {
        "fio version": f"lunscope-{version()}",
        "timestamp": int(now_s),
        "timestamp_ms": int(now_s * 1000),
        "time": time.ctime(now_s),
        "global options": {},
        "jobs": [_job(setting)],
    }


def _job(setting: KnobSetting) -> Figures:
    split = combine_splits([epoch.split for epoch in setting.epochs])
    duration_s = sum(epoch.duration_s for epoch in setting.epochs)
    reads = [(each.read, each.length_s) for each in setting.intervals]
    writes = [(each.write, each.length_s) for each in setting.intervals]
    seen_s = sum(each.length_s for each in setting.intervals)
    return {
        "jobname": setting.result.about.job.name,
        "groupid": 0,
        "error": next((error.errno for error in setting.result.errors), 0),
        "elapsed": round(setting.result.about.elapsed_s),
        "job options": _options(setting),
        "read": direction_figures(split.read, duration_s, reads),
        "write": direction_figures(split.write, duration_s, writes),
        "trim": direction_figures(combine([]), 0.0, []),
        "sync": _flushes(setting),
        "job_runtime": round(duration_s * 1000),
        # 100 is one processor; of the whole process, with what little the monitor needs.
        "usr_cpu": 100 * sum(each.user_s for each in setting.intervals) / seen_s,
        "sys_cpu": 100 * sum(each.system_s for each in setting.intervals) / seen_s,
        **latency_shares(split.total),
    }


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
    return {"total_ios": ios, "lat_ns": {"max": largest_ns, "mean": latency_ns / ios if ios else 0.0, "N": ios}}
