"""Results in a folder as bench-fio leaves them, so that fio-plot draws them.

<rw>-<iodepth>-<numjobs>.json                                  one for each set of knobs
<rw>-iodepth-<iodepth>-numjobs-<numjobs>_{bw,iops,lat}.1.log   the same by interval
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from engine.errors import LunscopeError
from engine.jobformats.fio_result import Setting, fio_document, settings_of
from engine.jobformats.formats import write_new
from engine.load_interval import DirectionGrowth, LoadInterval
from engine.result import RunResult
from engine.text import safe_text

_LEAST_INTERVALS = 2
"""fio-plot draws a line between two points at least."""
_FIGURES: dict[str, Callable[[DirectionGrowth, float], float]] = {
    "bw": lambda growth, length_s: growth.bytes / length_s / 1024,
    "iops": lambda growth, length_s: growth.ios / length_s,
    "lat": lambda growth, _length_s: growth.latency_ns / growth.ios,
}


def make_folder(folder: Path) -> None:
    """Make the folder for results before there are any, and see that it is empty: a run is too dear to have no place.

    Raises:
        LunscopeError: it cannot be made, or holds something.
    """
    shown = safe_text(str(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = next(folder.iterdir(), None)
    except OSError as error:
        raise LunscopeError(f"--fio-json {shown}: {error.strerror}") from None
    if held is not None:
        raise LunscopeError(f"--fio-json {shown}: is not empty: name a new folder, or remove {safe_text(held.name)}")


def write_results(folder: Path, result: RunResult, intervals: Sequence[LoadInterval]) -> list[str]:
    """Write the files of a run; returns what is not in them, one line each.

    Knobs that differ in more than the names tell have folders of their own, by their first epoch.

    Raises:
        LunscopeError: a file cannot be written.
    """
    settings = settings_of(result, intervals)
    names = [_stem(setting) for setting in settings]
    missing = []
    for setting, name in zip(settings, names, strict=True):
        index = setting.epochs[0].index
        if not setting.intervals:
            missing.append(f"--fio-json: epoch {index} is shorter than two samples (--interval): not written")
            continue
        place = folder if names.count(name) == 1 else folder / f"epoch-{index}"
        place.mkdir(exist_ok=True)
        write_new(place / f"{name}.json", (json.dumps(fio_document(setting), allow_nan=False, indent=1), "\n"))
        if len(setting.intervals) >= _LEAST_INTERVALS:
            _write_logs(place, setting)
    return missing


def _stem(setting: Setting) -> str:
    return f"{setting.read_write}-{setting.depth}-{setting.jobs}"


def _write_logs(folder: Path, setting: Setting) -> None:
    stem = f"{setting.read_write}-iodepth-{setting.depth}-numjobs-{setting.jobs}"
    for what, figure in _FIGURES.items():
        write_new(folder / f"{stem}_{what}.1.log", _log_lines(setting.intervals, figure))


def _log_lines(intervals: Iterable[LoadInterval], figure: Callable[[DirectionGrowth, float], float]) -> Iterator[str]:
    """Yield a line per interval and direction: time in ms, value, 0 or 1 for write, and two columns of averages."""
    for each in intervals:
        for number, growth in enumerate((each.read, each.write)):
            if growth.ios:
                yield f"{round(each.end_s * 1000)}, {round(figure(growth, each.length_s))}, {number}, 0, 0\n"
