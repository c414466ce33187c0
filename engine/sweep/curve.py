"""A curve through throughputs at several loads: it rises, bends at a knee, stays or falls; or does none of that.

In logarithms, with y = ln X and n = ln N: y = c - ln(1 + e^(-p (n - k))) / p - s max(0, n - f) + d t. Up to the knee k
throughput rises in proportion to the load, beyond it no more; p is how sharp the bend is. From f on it falls with the
slope s. d takes up a drift over the time of the sweep. Every simpler curve is this one without some of its terms.
"""

from __future__ import annotations

import functools
import math
import statistics
from enum import StrEnum

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine.statistics.student_t import t_quantile

Floats = NDArray[np.float64]

STEPS_PER_OCTAVE = 8
"""Steps of the grid of knees; half as many where the start of a fall is searched as well."""
_SHARPNESS = (1.0, 2.0, 5.0, 40.0)
"""1 is the bend of the scalability law without coherency, 40 nearly a corner."""
_SMALLEST = 1e-6
"""Variance of a logarithm that is never gone below: 0.1 % is not noise but rounding."""
_OUTLIER = 1.5
"""Robust standard deviations beyond which a trial counts less (Huber)."""
_REWEIGHINGS = 2
_NO_SQUARES = 1e-10
"""Smaller sums of squares are rounding: those of a term that does not vary, which has the coefficient 0."""
_KEPT_LOADS = 8
"""Sets of loads whose grids are kept, 50 kB each: those of one sweep, which grow in stages."""
_CONFIDENCE = 0.95


class Terms(StrEnum):
    """Which terms a curve has."""

    LEVEL = "level"
    SLOPE = "slope"
    BEND = "bend"
    BEND_AND_FALL = "bend and fall"
    FALL = "fall"


_PARAMETERS = {Terms.LEVEL: 1, Terms.SLOPE: 2, Terms.BEND: 3, Terms.FALL: 3, Terms.BEND_AND_FALL: 5}
_EVIDENCE = {Terms.LEVEL: -6.0, Terms.BEND_AND_FALL: 4.0}
"""Added to the criterion, so that an effect, or a fall, is seen with strong evidence only (Kass and Raftery, 1995)."""


class Observations(Struct, frozen=True, eq=False):
    """Trials as arrays: logarithms of load and throughput, and the time from -0.5 to 0.5 of the sweep."""

    n: Floats
    y: Floats
    t: Floats

    @classmethod
    def of(cls, loads: Floats, throughputs: Floats, times_s: Floats) -> Observations:
        """Take logarithms; throughputs must be above 0."""
        span = float(np.ptp(times_s)) if len(times_s) else 0.0
        t = (times_s - times_s.mean()) / span if span else np.zeros_like(times_s)
        return cls(np.log(loads), np.log(throughputs), t)


class Curves(Struct, frozen=True, eq=False):
    """Curves of one kind that fit, the best one first; one entry per curve in every array."""

    terms: Terms
    level: Floats
    slope: Floats
    knee: Floats
    """Logarithm of the load; -inf where there is no bend."""
    sharpness: Floats
    fall_from: Floats
    """Logarithm of the load; inf where nothing falls."""
    fall: Floats
    drift: float
    """Relative change of throughput over the sweep that is no effect of the load."""
    error: float
    """Root of the mean squared relative deviation of the best, over the degrees of freedom."""

    def y(self, n: Floats) -> Floats:
        """Logarithms of throughput, shape (curves, loads), without the drift."""
        columns = (each[:, None] for each in (self.level, self.slope, self.knee, self.sharpness))
        level, slope, knee, sharpness = columns
        fall_from, fall = self.fall_from[:, None], self.fall[:, None]
        falls = np.where(fall > 0, fall * np.maximum(n - fall_from, 0), 0.0)
        return np.asarray(level + slope * n + _bend(n, knee, sharpness) - falls, np.float64)


def _bend(n: Floats, knee: Floats, sharpness: Floats) -> Floats:
    """0 far beyond the knee, n - knee far below it."""
    beyond = sharpness * (n - knee)
    # log(1 + exp(-beyond)) without overflow; np.logaddexp takes four times as long.
    return np.asarray((np.minimum(beyond, 0) - np.log(1 + np.exp(-np.abs(beyond)))) / sharpness, np.float64)


def fit_curves(observed: Observations, *, with_drift: bool) -> Curves:
    """Fit every kind of curve, and return the best kind. Trials far off, as where a stall hit them, count less."""
    loads, of_trial = np.unique(observed.n, return_inverse=True)
    kinds = _kinds(tuple(loads.tolist()))
    weights = np.ones_like(observed.y)
    for _ in range(_REWEIGHINGS):
        best = _Fit(kinds[-1], _Sums(observed, of_trial, weights, with_drift=with_drift)).best()
        weights = _huber(observed.y - best.y(observed.n)[0] - best.drift * observed.t)
    drifts = (False, True) if with_drift else (False,)
    sums = [_Sums(observed, of_trial, weights, with_drift=drift) for drift in drifts]
    fits = [_Fit(kind, each) for kind in kinds for each in sums]
    return min(fits, key=lambda fit: fit.criterion + _EVIDENCE.get(fit.terms, 0.0)).curves()


def _huber(deviations: Floats) -> Floats:
    sizes = np.abs(deviations)
    # np.median takes ten times as long for a few values.
    scale = max(1.4826 * statistics.median(sizes.tolist()), math.sqrt(_SMALLEST))
    return np.asarray(np.minimum(1.0, _OUTLIER * scale / np.maximum(sizes, 1e-12)), np.float64)


class _Kind(Struct, frozen=True, eq=False):
    """One kind of curve at the loads measured, with the grid of what is not linear in it: each bend with each fall."""

    terms: Terms
    knee: Floats
    """Shape (bends), as `sharpness`; one entry where there is no bend."""
    sharpness: Floats
    bends: Floats
    """Shape (bends, loads)."""
    fall_from: Floats
    """Shape (falls); one entry where nothing falls."""
    column: Floats
    """What slope or fall is the coefficient of; shape (falls, loads); 0 where there is neither."""
    is_left_out: NDArray[np.bool_]
    """Whether the fall would begin before the knee; shape (bends, falls)."""


@functools.lru_cache(maxsize=_KEPT_LOADS)
def _kinds(loads: tuple[float, ...]) -> tuple[_Kind, ...]:
    """Make the grids of the kinds that a number of loads can tell apart, the richest last.

    They depend on the loads alone: what is measured again and again needs them once.
    """
    n = np.array(loads)
    grid = np.arange(n[0], n[-1] + 0.01, math.log(2) / STEPS_PER_OCTAVE)
    simple = [_kind(terms, n, grid) for terms in (Terms.LEVEL, Terms.SLOPE, Terms.BEND)]
    if len(n) <= _PARAMETERS[Terms.BEND_AND_FALL]:
        return tuple(simple)
    return (*simple, _kind(Terms.FALL, n, grid), _kind(Terms.BEND_AND_FALL, n, grid[::2]))


def _kind(terms: Terms, n: Floats, grid: Floats) -> _Kind:
    knee, sharpness, bends = np.array([-np.inf]), np.ones(1), np.zeros((1, len(n)))
    if "bend" in terms:
        knee, sharpness = np.repeat(grid, len(_SHARPNESS)), np.tile(_SHARPNESS, len(grid))
        bends = _bend(n, knee[:, None], sharpness[:, None])
    fall_from, column = np.array([np.inf]), n[None, :] if terms is Terms.SLOPE else np.zeros((1, len(n)))
    if "fall" in terms:
        fall_from = grid[grid < n[-2] + 1e-9]
        column = -np.maximum(n - fall_from[:, None], 0)
    return _Kind(terms, knee, sharpness, bends, fall_from, column, fall_from < knee[:, None] - 1e-9)


class _Sums:
    """Weighted sums over the trials of each load, from which level and drift are taken out (Frisch, Waugh, Lovell).

    All other terms are the same for all trials of a load. Sums of products with any of them follow from these alone,
    without a pass over the trials at each point of a grid.
    """

    def __init__(
        self, observed: Observations, of_trial: NDArray[np.intp], weights: Floats, *, with_drift: bool
    ) -> None:
        t = observed.t if with_drift else np.zeros_like(observed.t)
        self.trials, self.drifts = len(weights), int(with_drift)
        self._total = float(weights.sum())
        self._mean_y, self._mean_t = float(weights @ observed.y) / self._total, float(weights @ t) / self._total
        y, t = observed.y - self._mean_y, t - self._mean_t
        self._weight = np.bincount(of_trial, weights)
        self._t = np.bincount(of_trial, weights * t)
        self._squares_of_t, self._y_and_t = max(float(weights @ t**2), _NO_SQUARES), float(weights @ (y * t))
        self.y: Floats = np.bincount(of_trial, weights * y) - self._t * (self._y_and_t / self._squares_of_t)
        """Product of each load with the throughputs."""
        self.squares = float(weights @ y**2) - self._y_and_t**2 / self._squares_of_t
        """Sum of the squares of the throughputs."""
        self.products: Floats = (
            np.diag(self._weight)
            - np.outer(self._weight, self._weight / self._total)
            - np.outer(self._t, self._t / self._squares_of_t)
        )
        """Sums of the products of each load with each other."""

    def level_and_drift(self, curves: Floats) -> tuple[Floats, Floats]:
        """Find both for curves without them; shape (curves, loads)."""
        drift = (self._y_and_t - curves @ self._t) / self._squares_of_t
        level = self._mean_y - curves @ self._weight / self._total - drift * self._mean_t
        return level, drift


class _Fit:
    """Least squares at every point of the grid of a kind; a fall that would rise is 0."""

    def __init__(self, kind: _Kind, sums: _Sums) -> None:
        self._kind, self._sums, self.terms = kind, sums, kind.terms
        across = kind.bends @ sums.products
        without = sums.squares - 2 * kind.bends @ sums.y + (across * kind.bends).sum(axis=1)
        both = kind.column @ sums.y - across @ kind.column.T
        coefficient = both / np.maximum(((kind.column @ sums.products) * kind.column).sum(axis=1), _NO_SQUARES)
        self._coefficient = np.maximum(coefficient, 0) if "fall" in kind.terms else coefficient
        squares = np.maximum(without[:, None] - self._coefficient * both, 0)
        self._squares = np.where(kind.is_left_out, np.inf, squares)
        self._least = float(self._squares.min())
        self._parameters = _PARAMETERS[kind.terms] + sums.drifts

    @property
    def criterion(self) -> float:
        """Bayesian information criterion of the best curve."""
        count = self._sums.trials
        return count * math.log(self._least / count + _SMALLEST) + self._parameters * math.log(count)

    def best(self) -> Curves:
        """Return the curve that fits best."""
        return self._curves(np.array([self._squares.argmin()]))

    def curves(self) -> Curves:
        """Return all curves that fit."""
        allowed = self._least + _SMALLEST * self._sums.trials
        allowed *= 1 + t_quantile(_CONFIDENCE, self._freedom) ** 2 / self._freedom
        squares = self._squares.ravel()
        fitting = np.flatnonzero(squares <= allowed)
        return self._curves(fitting[np.argsort(squares[fitting])])

    @property
    def _freedom(self) -> int:
        return max(self._sums.trials - self._parameters, 1)

    def _curves(self, points: NDArray[np.intp]) -> Curves:
        kind = self._kind
        bend, fall = np.unravel_index(points, self._squares.shape)
        coefficient = self._coefficient[bend, fall]
        level, drift = self._sums.level_and_drift(kind.bends[bend] + coefficient[:, None] * kind.column[fall])
        zero = np.zeros_like(coefficient)
        return Curves(
            self.terms,
            level,
            coefficient if self.terms is Terms.SLOPE else zero,
            kind.knee[bend],
            kind.sharpness[bend],
            kind.fall_from[fall],
            coefficient if "fall" in self.terms else zero,
            drift=float(drift[0]),
            error=math.sqrt(self._least / self._freedom),
        )
