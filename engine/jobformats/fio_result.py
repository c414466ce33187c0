"""Results as fio's JSON output, one document for each set of knobs, as fio has one for each of its runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.errors import UsageError
from engine.job.read_write import rw_word
from engine.job.sizes import format_blocks, format_duration
from engine.job.spec import JobSpec, Knobs
from engine.jobformats.fio_options import fio_options
from engine.jobformats.fio_statistics import Figures, direction_figures, latency_shares
from engine.results.measured import combine
from engine.results.result import EpochResult, RunResult
from engine.results.split import combine_splits
from engine.running.load_interval import LoadInterval
from engine.version import version


@dataclass(frozen=True, slots=True, eq=False)
class KnobSetting:
    """All epochs of a run that had the same knobs."""

    result: RunResult
    epochs: tuple[EpochResult, ...]
    intervals: tuple[LoadInterval, ...]

    @property
    def name(self) -> RunName:
        """Order, depth and jobs, by which fio-plot tells runs apart."""
        return run_name(self.result.about.job, self.epochs[0].knobs)


@dataclass(frozen=True, slots=True)
class RunName:
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
