"""One load of a sweep, from the file of its trials, as one side of a comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from collectors.compare.part import PartText
from collectors.compare.side import Figure, Side, SideRow, Spread
from collectors.model import Tier
from collectors.tables.study.subjects import SWEEP_POINTS, figure_of
from engine.errors import UsageError, unusable, words_of
from engine.small_file import FileKindError, read_head
from engine.statistics.batch_means import BATCHES
from engine.statistics.difference import Estimate
from engine.statistics.student_t import t_quantile
from engine.study.trial_file import read_trials
from engine.sweep.text import PointSummary
from engine.sweep.trial import TRIALS, Trial
from engine.text import safe_text

_LEAST_TRIALS = 3
"""Fewest trials whose spread says how well a figure is known."""
_CONFIDENCE = 0.95
_FIELDS = (("bytes_per_s", "bytes_per_s"), ("await_ms", "mean_ms"), ("in_flight", "in_flight"))
"""Fields of loads, and those of points that say the same of a trial."""
_PERCENTILES = {50.0: "p50", 90.0: "p90", 99.0: "p99", 99.9: "p99.9"}


def is_trial_file(path: Path) -> bool:
    """Whether a file of JSON begins as one of trials.

    Raises:
        LunscopeError: it cannot be read.
    """
    try:
        return TRIALS.schema.encode() in read_head(path, 128)
    except FileKindError as error:
        raise UsageError(f"{safe_text(str(path))}: {error}") from None
    except OSError as error:
        raise unusable(f"{safe_text(str(path))}: {words_of(error)}", error) from None


def sweep_side(text: str, part: PartText) -> Side:
    """Read the trials of one load.

    Raises:
        UsageError: no load is named, it was not measured, or the file is damaged.
    """
    name = safe_text(str(part.path))
    done = [(curve, trial) for curve, trial in read_trials(part.path, TRIALS).trials if not trial.failing]
    loads = sorted({_point(curve, trial) for curve, trial in done})
    several = len({curve for curve, _ in loads}) > 1
    if not part.point or (several and ":" not in part.point):
        raise UsageError(f"{name}: the file of a sweep: give a load, as {_example(loads, several=several)}")
    curve, _, load = part.point.rpartition(":")
    wanted = int(curve or (loads[0][0] if loads else 0)), float(load)
    trials = [trial for curve, trial in done if _point(curve, trial) == wanted]
    if not trials:
        raise UsageError(f"{name}: no load {part.point}: give one as {_example(loads, several=several)}")
    words = f"{len(trials)} measurement{'' if len(trials) == 1 else 's'}"
    return Side(text, "sweep", (_row(trials),), words=words, tier=Tier.EXACT)


def _point(curve: int, trial: Trial) -> tuple[int, float]:
    return curve, trial.load


def _example(loads: Sequence[tuple[int, float]], *, several: bool) -> str:
    curve, load = loads[0] if loads else (0, 1.0)
    return f"@{curve}:{load:g}" if several else f"@{load:g}"


def _row(trials: Sequence[Trial]) -> SideRow:
    points = [PointSummary(trial.load, (trial,)) for trial in trials]
    known = {name: [figure_of(SWEEP_POINTS, point, field) or 0.0 for point in points] for name, field in _FIELDS}
    figures = {
        "iops": Figure(_mean([trial.iops for trial in trials]), estimate=_throughput(trials), tier=Tier.EXACT),
        **{name: _between(values) for name, values in known.items()},
    }
    percentiles = {percent: _median_ms(trials, name) for percent, name in _PERCENTILES.items()}
    measured = {percent: value for percent, value in percentiles.items() if not math.isnan(value)}
    spread = Spread(measured, _median_ms(trials, "max"), sum(trial.ios for trial in trials))
    return SideRow("load_total", "load", "all targets", "load", figures, spreads={"latency": spread})


def _throughput(trials: Sequence[Trial]) -> Estimate:
    """Error of IOPS: that between trials, or that within one where there are few."""
    between = _between([trial.iops for trial in trials]).estimate
    errors = [trial.half_width * trial.iops / t_quantile(_CONFIDENCE, BATCHES - 1) for trial in trials]
    within = sum(error**2 for error in errors) / len(trials) ** 2
    mean = _mean([trial.iops for trial in trials])
    if between is None or within > between.squared_error:
        return Estimate(mean, within, BATCHES - 1)
    return between


def _between(values: Sequence[float]) -> Figure:
    mean, count = _mean(values), len(values)
    error = float(np.var(values, ddof=1)) / count if count >= _LEAST_TRIALS else math.nan
    return Figure(mean, estimate=None if math.isnan(error) else Estimate(mean, error, count - 1), tier=Tier.EXACT)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _median_ms(trials: Sequence[Trial], name: str) -> float:
    known = [value for trial in trials if (value := trial.latencies_ns.get(name)) is not None]
    return float(np.median(known)) / 1e6 if known else math.nan
