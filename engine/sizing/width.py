"""What one number of disks gives: throughput and latency over the queue depth of each, by the curve that fits."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engine.sizing.need import Need
from engine.sweep.curve import Curves
from engine.sweep.knee import Answer, Shape, answer, fit_trials
from engine.sweep.repeats import Repeats, spread_of
from engine.sweep.trial import Trial

Floats = NDArray[np.float64]

_LEAST_FITTED = 4
"""Fewest depths through which a curve is fitted; fewer are joined by straight lines, in logarithms."""
_REACHED = 0.6
"""Least share of disks x queue depth that has to be outstanding: one depth for two disks together is a half."""
_NEAR = math.log(2) / 2
"""Distance of depths, in logarithms, over which deviations from a curve are smoothed."""
_OUTLIER = 0.05
"""Deviations count for no more: farther off are stalls."""
_NO_CURVE = frozenset({Shape.UNKNOWN, Shape.WARMING, Shape.SLOWING})
_KEEPS = 1.001
"""A limit is kept up to this share of it: the rounding of the sums, not of the need."""


class DiskCurve:
    """A number of disks at every queue depth between the lowest and the highest that was measured.

    The mean latency follows from the fitted throughput by Little's law, as I/Os in flight / IOPS; a percentile is that
    times its measured ratio to the mean, which changes less with the depth than either.
    """

    def __init__(self, disks: int, trials: Sequence[Trial]) -> None:
        self.disks = disks
        self._trials = trials
        self._loads = sorted({trial.load for trial in trials})
        self._by_load = [[trial for trial in trials if trial.load == load] for load in self._loads]
        self.depths: NDArray[np.int64] = np.arange(round(self._loads[0]), round(self._loads[-1]) + 1)
        """All depths that it knows of."""
        self._n = np.log(self.depths)

    @cached_property
    def problem(self) -> str:
        """Why nothing can be concluded of it; empty if something can."""
        reached = statistics.median(trial.in_flight / (self.disks * trial.load) for trial in self._trials)
        if reached < _REACHED:
            return f"I/Os outstanding are {100 * reached:.0f} % of disks x qd: the depth is not that of each disk"
        if len(self._loads) < _LEAST_FITTED:
            return "" if all(trial.is_settled for trial in self._trials) else "measurements never became steady"
        return self._answer.words if self._answer.shape in _NO_CURVE else ""

    @cached_property
    def _answer(self) -> Answer:
        return answer(self._trials, with_usl=False)

    @cached_property
    def iops(self) -> Floats:
        """Throughput at each depth."""
        return np.asarray(self._between[0], np.float64)

    @cached_property
    def uncertainty(self) -> float:
        """How far the highest throughput is certain, as a share of it."""
        repeats = Repeats.of(self._trials)
        measured = statistics.median(spread_of(trials, repeats) for trials in self._by_load)
        every = self._between.max(axis=1)
        return float(max(measured, every.max() / every[0] - 1, 1 - every.min() / every[0]))

    @cached_property
    def _between(self) -> Floats:
        """Throughputs by all curves that fit as well as the best, which is the first; shape (curves, depths)."""
        if len(self._loads) >= _LEAST_FITTED:
            fitted = fit_trials(self._trials)
            return np.asarray(np.exp(fitted.y(self._n) + self._left_over(fitted)), np.float64)
        joined = self._joined([_median(trials, "iops") for trials in self._by_load])
        return np.asarray(np.exp(joined)[None, :], np.float64)

    def _left_over(self, fitted: Curves) -> Floats:
        """Smooth what the best curve leaves of the trials around each depth: its knee is on a grid."""
        n = np.log([trial.load for trial in self._trials])
        left = np.log([trial.iops for trial in self._trials]) - fitted.y(n)[0]
        weights = np.exp(-0.5 * ((self._n[:, None] - n) / _NEAR) ** 2)
        return np.asarray(weights @ left.clip(-_OUTLIER, _OUTLIER) / weights.sum(axis=1), np.float64)

    @cached_property
    def _mean_ns(self) -> Floats:
        in_flight = np.exp(self._joined([_median(trials, "in_flight") for trials in self._by_load]))
        return np.asarray(1e9 * in_flight / self.iops, np.float64)

    def latency_ns(self, metric: str) -> Floats | None:
        """Mean, percentile or largest latency at each depth, which never falls; None where it was not measured."""
        if metric == "mean":
            return np.maximum.accumulate(self._mean_ns)
        ratios = [
            [value / trial.latency_ns for trial in trials if (value := trial.latency_of(metric)) and trial.latency_ns]
            for trials in self._by_load
        ]
        if not all(ratios):
            return None
        return np.maximum.accumulate(self._mean_ns * np.exp(self._joined(list(map(statistics.median, ratios)))))

    def _joined(self, values: Sequence[float]) -> Floats:
        """Join the values of the measured depths, in logarithms."""
        return np.interp(self._n, np.log(self._loads), np.log(values))

    def most(self, need: Need) -> int:
        """Count the depths, from the lowest, that keep all limits.

        A limit whose metric was not measured is in `missing`.
        """
        kept = np.ones(len(self.depths), np.bool_)
        for limit in need.limits:
            latency_ns = self.latency_ns(limit.metric)
            assert latency_ns is not None, "asked of `missing` before"
            kept &= latency_ns <= limit.limit_ns * _KEEPS
        return int(kept.sum())

    def missing(self, need: Need) -> str:
        """Name a limit whose figure has too few I/Os at some depth; empty if all are known."""
        return next((limit.metric for limit in need.limits if self.latency_ns(limit.metric) is None), "")


def _median(trials: Sequence[Trial], field: str) -> float:
    return float(statistics.median(getattr(trial, field) for trial in trials))
