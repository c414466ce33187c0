"""Results in a folder as bench-fio leaves them, so that fio-plot and the readers of fio's json+ and logs read them.

<rw>-<iodepth>-<numjobs>.json                                            one for each set of knobs
<rw>-iodepth-<iodepth>-numjobs-<numjobs>_{bw,iops,lat,clat_hist}.1.log   the same by interval
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from engine.errors import UsageError, unusable
from engine.job.formats.choose import write_new
from engine.job.scenario import Scenario
from engine.results.fio_result import MOST_BINS, Figures, KnobSetting, fio_document, run_name, settings_of
from engine.results.measured import DirectionDelta, LoadInterval
from engine.results.result import RunResult
from engine.text import safe_text

_OWN_FOLDER = "run-"
_LEAST_INTERVALS = 2
"""fio-plot draws a line between two points at least."""
_FIGURES: dict[str, Callable[[DirectionDelta, float], float | None]] = {
    "bw": lambda growth, length_s: growth.bytes / length_s / 1024,
    "iops": lambda growth, length_s: growth.ios / length_s,
    "lat": lambda growth, _length_s: growth.latency_ns / growth.ios if growth.ios else None,
}
"""A figure of an interval, None where there is none: without I/Os the rate is 0 and the latency unknown."""


def make_folder(folder: Path, scenarios: Sequence[Scenario]) -> None:
    """Make the folder for results before the run, so that a long run cannot end without a place to write them.

    Raises:
        LunscopeError: it cannot be made, or holds results of a run of the same name.
    """
    shown = safe_text(str(folder))
    states = (
        (each.job, knobs) for each in scenarios for knobs in (each.job.knobs, *(knobs for _, knobs in each.states()))
    )
    names = {run_name(job, knobs).document for job, knobs in states}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = [path.name for path in folder.iterdir() if path.name in names or path.name.startswith(_OWN_FOLDER)]
    except OSError as error:
        raise unusable(f"--fio-json {shown}: {error.strerror}", error) from None
    if held:
        raise UsageError(f"--fio-json {shown}: has results already: name another folder, or remove {min(held)}")


class FioRun(Struct, frozen=True, eq=False):
    """A run, by interval and with the disks below it."""

    result: RunResult
    intervals: Sequence[LoadInterval]
    disks: Sequence[Figures] = ()


def write_results(folder: Path, runs: Sequence[FioRun]) -> list[str]:
    """Write the files of runs; returns what is not in them, one line each.

    Knobs that differ in more than the names show have folders of their own, numbered in the order of the runs.

    Raises:
        LunscopeError: a file cannot be written.
    """
    settings = [(setting, run.disks) for run in runs for setting in settings_of(run.result, run.intervals)]
    names = [setting.name for setting, _ in settings]
    missing = []
    for number, ((setting, disks), name) in enumerate(zip(settings, names, strict=True), 1):
        own_folder = folder if names.count(name) == 1 else folder / f"{_OWN_FOLDER}{number}"
        own_folder.mkdir(exist_ok=True)
        document = json.dumps(fio_document(setting, disks), allow_nan=False, indent=1)
        write_new(own_folder / name.document, (document, "\n"))
        if len(setting.intervals) < _LEAST_INTERVALS:
            what = f"{name.document}: shorter than two samples (--interval): no logs, and little or nothing by interval"
            missing.append(f"--fio-json: {what}")
            continue
        for what, figure in _FIGURES.items():
            write_new(own_folder / name.log(what), _log_lines(setting.intervals, figure))
        write_new(own_folder / name.log("clat_hist"), _histogram_lines(setting))
    return missing


def _histogram_lines(setting: KnobSetting) -> Iterator[str]:
    """Yield a line per interval and direction in use: time in ms, 0 or 1 for writes, block size, and all buckets."""
    begin_s = setting.intervals[0].end_s - setting.intervals[0].length_s
    largest = max(setting.epochs[0].knobs.block_sizes)
    used = [any(each.read.times for each in setting.intervals), any(each.write.times for each in setting.intervals)]
    for each in setting.intervals:
        for number, growth in enumerate((each.read, each.write)):
            if used[number]:
                counts = [0] * MOST_BINS
                for bucket, count in growth.times.items():
                    counts[min(bucket, MOST_BINS - 1)] += count
                time_ms = round((each.end_s - begin_s) * 1000)
                yield f"{time_ms}, {number}, {largest}, {', '.join(map(str, counts))}\n"


def _log_lines(
    intervals: Sequence[LoadInterval], figure: Callable[[DirectionDelta, float], float | None]
) -> Iterator[str]:
    """Yield a line per interval and direction in use: time in ms, value, 0 or 1 for writes, two unused columns."""
    begin_s = intervals[0].end_s - intervals[0].length_s
    used = [any(each.read.ios for each in intervals), any(each.write.ios for each in intervals)]
    for each in intervals:
        for number, growth in enumerate((each.read, each.write)):
            value = figure(growth, each.length_s) if used[number] else None
            if value is not None:
                time_ms = round((each.end_s - begin_s) * 1000)
                yield f"{time_ms}, {round(value)}, {number}, 0, 0\n"
