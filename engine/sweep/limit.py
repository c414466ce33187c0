"""Limits of latency, such as p99<=5ms, and the highest load that keeps one."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence

from msgspec import Struct

from engine.errors import UsageError
from engine.job.sizes import format_duration, parse_duration
from engine.replacing import replace
from engine.statistics.batch_means import StopRule
from engine.sweep.trial import Trial

_OF_NORMAL = 1.4826
"""Standard deviation of a normal distribution as a multiple of its median absolute deviation."""
METRICS = ("mean", "p50", "p90", "p99", "p99.9", "max")
_TEXT = re.compile(r"\s*([a-z0-9.]+)\s*(<=|<)\s*(.+)", re.ASCII)


class Limit(Struct, frozen=True):
    """The most that a latency may be."""

    metric: str
    limit_ns: float

    @classmethod
    def parse(cls, text: str) -> Limit:
        """Read `p99<=5ms`.

        Raises:
            UsageError: it is no limit.
        """
        match = _TEXT.fullmatch(text)
        if match is None or match[1] not in METRICS:
            raise UsageError(f"{text!r} is not a limit: write it like p99<=5ms, with one of {', '.join(METRICS)}")
        limit_s = parse_duration(match[3])
        if not 1e-9 <= limit_s < math.inf:
            raise UsageError(f"{text!r}: a limit is at least a nanosecond")
        return cls(match[1], float(round(limit_s * 1e9)))

    @property
    def percent(self) -> float | None:
        """Percentile that it is about; None of a mean or a maximum."""
        return float(self.metric[1:]) if self.metric.startswith("p") else None

    @property
    def text(self) -> str:
        """As it is typed."""
        for unit, scale in (("us", 1e3), ("ms", 1e6)):
            if self.limit_ns < 1000 * scale:
                return f"{self.metric}<={self.limit_ns / scale:g}{unit}"
        return f"{self.metric}<={format_duration(self.limit_ns / 1e9)}"


def rule_for(limits: Sequence[Limit]) -> StopRule:
    """Say when a point is measured enough: p99 is shown, and each percentile of a limit gets the I/Os it needs."""
    percents = [limit.percent for limit in limits if limit.percent is not None]
    rule = StopRule()
    if not percents:
        return rule
    return replace(rule, percent=max(*percents, rule.percent), most_for_percentile_s=rule.most_s)


class Crossing(Struct, frozen=True):
    """The highest load that keeps a limit."""

    load: float
    low: float
    high: float
    error: float
    """Spread of the logarithm of latency between trials with the same load."""
    steepness: float
    """How fast, in logarithms, latency rises there."""


def load_within(trials: Sequence[Trial], limit: Limit) -> Crossing | None:
    """Find the highest load whose latency keeps the limit; None if the lowest does not, or none has the metric.

    Latency is taken to rise with the load: where noise lets it fall, the median holds (isotonic regression). Between
    measured loads it is interpolated in logarithms.
    """
    samples: dict[float, list[float]] = {}
    for trial in trials:
        latency_ns = trial.latency_of(limit.metric)
        if latency_ns is not None and latency_ns > 0:
            samples.setdefault(trial.load, []).append(math.log(latency_ns))
    if not samples:
        return None
    loads = sorted(samples)
    levels = _rising([samples[load] for load in loads])
    error, ceiling = _spread(samples), math.log(limit.limit_ns)
    n = [math.log(load) for load in loads]
    found = _cross(n, levels, ceiling)
    if found is None:
        return None
    low, high = _cross(n, levels, ceiling - 2 * error), _cross(n, levels, ceiling + 2 * error)
    ends = math.exp(n[0] if low is None else low), math.exp(n[-1] if high is None else high)
    return Crossing(math.exp(found), *ends, error, _slope(n, levels, found))


def _rising(samples: Sequence[Sequence[float]]) -> list[float]:
    """Isotonic regression of medians by pooling adjacent violators: a few outliers move no level."""
    blocks: list[tuple[list[float], int]] = []
    for values in samples:
        pooled, count = list(values), 1
        while blocks and statistics.median(blocks[-1][0]) > statistics.median(pooled):
            before, loads = blocks.pop()
            pooled, count = before + pooled, loads + count
        blocks.append((pooled, count))
    return [statistics.median(pooled) for pooled, count in blocks for _ in range(count)]


def _spread(samples: dict[float, list[float]]) -> float:
    """Estimate the standard deviation between repeated trials by a median; 0 where none was repeated."""
    deviations = [
        abs(value - statistics.median(values)) * math.sqrt(len(values) / (len(values) - 1))
        for values in samples.values()
        if len(values) > 1
        for value in values
    ]
    return _OF_NORMAL * statistics.median(deviations) if deviations else 0.0


def _cross(n: list[float], levels: list[float], ceiling: float) -> float | None:
    """Logarithm of the highest load at or under the ceiling; None if there is none."""
    under = sum(level <= ceiling + 1e-12 for level in levels)
    if under == 0:
        return None
    if under == len(levels):
        return n[-1]
    rise = levels[under] - levels[under - 1]
    return n[under - 1] + (n[under] - n[under - 1]) * (ceiling - levels[under - 1]) / rise


def _slope(n: list[float], levels: list[float], found: float) -> float:
    above = next((index for index, each in enumerate(n) if each > found), None)
    if above is None or above == 0:
        return 0.0
    return (levels[above] - levels[above - 1]) / (n[above] - n[above - 1])
