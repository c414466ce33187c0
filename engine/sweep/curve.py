"""A curve through throughputs at several loads: it rises, bends at a knee, stays or falls; or does none of that.

In logarithms, with y = ln X and n = ln N: y = c - ln(1 + e^(-p (n - k))) / p - s max(0, n - f) + d t. Up to the knee k
throughput rises in proportion to the load, beyond it no more; p is how sharp the bend is. From f on it falls with the
slope s. d takes up a drift over the time of the sweep. Every simpler curve is this one without some of its terms.
"""

from __future__ import annotations

import math
from enum import StrEnum

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine.statistics.student_t import t_quantile

Floats = NDArray[np.float64]

STEPS_PER_OCTAVE = 8
"""Of the grid of knees; half of it where the start of a fall is searched as well."""
_SHARPNESS = (1.0, 2.0, 5.0, 40.0)
"""1 is the bend of the scalability law without coherency, 40 nearly a corner."""
_SMALLEST = 1e-6
"""Variance of a logarithm that is never gone below: 0.1 % is not noise but rounding."""
_OUTLIER = 1.5
"""Robust standard deviations beyond which a trial counts less (Huber)."""
_REWEIGHINGS = 2
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
    criterion: float
    """Bayesian information criterion of the best; the lowest of several kinds is taken."""

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


def fit_curves(observed: Observations, *, with_drift: bool) -> list[Curves]:
    """Fit every kind of curve, the best first. Trials far off, such as those that a stall hit, count less."""
    kinds = list(Terms) if len(np.unique(observed.n)) > _PARAMETERS[Terms.BEND_AND_FALL] else list(Terms)[:3]
    fits = {terms: _Fit(observed, terms) for terms in kinds}
    richest = fits.get(Terms.BEND_AND_FALL, fits[Terms.BEND])
    weights = np.ones_like(observed.y)
    for _ in range(_REWEIGHINGS):
        curves = richest.curves(weights, with_drift=with_drift)
        weights = _huber(observed.y - curves.y(observed.n)[0] - curves.drift * observed.t)
    drifts = (False, True) if with_drift else (False,)
    found = [fit.curves(weights, with_drift=drift) for fit in fits.values() for drift in drifts]
    return sorted(found, key=lambda each: each.criterion + _EVIDENCE.get(each.terms, 0.0))


def _huber(deviations: Floats) -> Floats:
    scale = max(1.4826 * float(np.median(np.abs(deviations))), math.sqrt(_SMALLEST))
    return np.asarray(np.minimum(1.0, _OUTLIER * scale / np.maximum(np.abs(deviations), 1e-12)), np.float64)


class _Fit:
    """Least squares over a grid of what is not linear: knee, sharpness, where the fall begins."""

    def __init__(self, observed: Observations, terms: Terms) -> None:
        self._observed, self._terms = observed, terms
        self._knee, self._sharpness, self._fall_from = self._grid()
        self._columns, self._target = self._linear_columns(), self._linear_target()

    def _grid(self) -> tuple[Floats, Floats, Floats]:
        n = self._observed.n
        low, high = float(n.min()), float(n.max())
        coarser = 2 if self._terms is Terms.BEND_AND_FALL else 1
        loads = np.arange(low, high + 0.01, coarser * math.log(2) / STEPS_PER_OCTAVE)
        knees = loads if "bend" in self._terms else np.array([-np.inf])
        sharpness = np.array(_SHARPNESS) if "bend" in self._terms else np.array([1.0])
        falls = loads[loads < sorted(set(n.tolist()))[-2] + 1e-9] if "fall" in self._terms else np.array([np.inf])
        grid = np.stack([each.ravel() for each in np.meshgrid(knees, sharpness, falls, indexing="ij")])
        grid = grid[:, grid[2] >= grid[0] - 1e-9]
        return grid[0], grid[1], grid[2]

    def curves(self, weights: Floats, *, with_drift: bool) -> Curves:
        """Fit with these weights of the trials."""
        linear, squares = self._solve(weights, with_drift=with_drift)
        count = len(self._observed.y)
        parameters = _PARAMETERS[self._terms] + with_drift
        freedom = max(count - parameters, 1)
        best = int(np.argmin(squares))
        allowed = squares[best] + _SMALLEST * count
        allowed *= 1 + t_quantile(_CONFIDENCE, freedom) ** 2 / freedom
        order = np.argsort(squares)
        order = order[squares[order] <= allowed]
        criterion = count * math.log(squares[best] / count + _SMALLEST) + parameters * math.log(count)
        level, slope, fall, drift = linear
        return Curves(
            self._terms,
            level[order],
            slope[order],
            self._knee[order],
            self._sharpness[order],
            self._fall_from[order],
            fall[order],
            drift=float(drift[best]),
            error=math.sqrt(squares[best] / freedom),
            criterion=criterion,
        )

    def _solve(self, weights: Floats, *, with_drift: bool) -> tuple[tuple[Floats, Floats, Floats, Floats], Floats]:
        """Solve for level, slope, fall and drift at every point of the grid; a fall that would rise is 0."""
        columns = [*self._columns, self._observed.t[None, :]] if with_drift else self._columns
        solution, squares = _least_squares(columns, self._target, weights)
        if "fall" in self._terms:
            rises = np.flatnonzero(solution[:, 1] <= 0)
            without = columns[:1] + columns[2:]
            flat_solution, squares[rises] = _least_squares(without, self._target[rises], weights)
            solution[rises] = np.insert(flat_solution, 1, 0.0, axis=-1)
        zero = np.zeros(len(squares))
        slope = solution[:, 1] if self._terms is Terms.SLOPE else zero
        fall = solution[:, 1] if "fall" in self._terms else zero
        return (solution[:, 0], slope, fall, solution[:, -1] if with_drift else zero), squares

    def _linear_target(self) -> Floats:
        """Compute what the linear terms are to explain."""
        if "bend" not in self._terms:
            return np.broadcast_to(self._observed.y, (len(self._knee), len(self._observed.y)))
        # Points that differ in their fall alone have the same bend.
        shapes, of_point = np.unique(self._knee + 1j * self._sharpness, return_inverse=True)
        bends = _bend(self._observed.n, shapes.real[:, None], shapes.imag[:, None])
        return np.asarray(self._observed.y - bends[of_point], np.float64)

    def _linear_columns(self) -> list[Floats]:
        """Columns of the linear terms but the drift; shape (grid, trials), or (1, trials) where none differs."""
        columns = [np.ones((1, len(self._observed.n)))]
        if self._terms is Terms.SLOPE:
            columns.append(self._observed.n[None, :])
        if "fall" in self._terms:
            columns.append(-np.maximum(self._observed.n - self._fall_from[:, None], 0))
        return columns


def _least_squares(columns: list[Floats], target: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Solve all systems by their normal equations: the solutions, and the weighted squares that are left.

    Sums over trials are products with the weights: thousands of products of small matrices take many times longer.
    """
    terms = range(len(columns))
    # Without a term that differs between the points of the grid all systems have the same matrix.
    systems = max(len(column) for column in columns)
    normal, right = np.empty((systems, len(columns), len(columns))), np.empty((len(target), len(columns)))
    for row in terms:
        right[:, row] = (columns[row] * target) @ weights
        for column in terms[: row + 1]:
            normal[:, row, column] = normal[:, column, row] = (columns[row] * columns[column]) @ weights
    normal += 1e-9 * np.eye(len(columns))
    shared = systems == 1
    solution = right @ np.linalg.inv(normal[0]) if shared else np.linalg.solve(normal, right[..., None])[..., 0]
    left = target.copy()
    for term in terms:
        left -= solution[:, term, None] * columns[term]
    return np.asarray(solution, np.float64), np.asarray(left**2 @ weights, np.float64)
