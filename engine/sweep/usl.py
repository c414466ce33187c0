"""The universal scalability law (Gunther), X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)), fitted."""

from __future__ import annotations

import itertools
import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

_PARAMETERS = 3
_STEPS = 50
_LEAST_LOADS = 4
"""Different loads that a fit of three parameters needs to say anything."""

Floats = NDArray[np.float64]


class Usl(Struct, frozen=True):
    """A fitted curve."""

    rate: float
    """lambda: throughput of the first I/O in flight, had it the device alone."""
    contention: float
    """sigma: share of the work that queues behind other work; 0 scales without limit, 1 not at all."""
    coherency: float
    """kappa: what each pair of outstanding I/Os costs; above 0 throughput falls beyond the peak."""
    error: float
    """Root of the mean squared relative deviation, over the degrees of freedom."""
    r_squared: float
    """Share of the variance of throughput that the curve explains."""

    def throughput(self, load: float | Floats) -> Floats:
        """Throughput of the curve."""
        n = np.asarray(load, np.float64)
        return np.asarray(self.rate * n / (1 + self.contention * (n - 1) + self.coherency * n * (n - 1)), np.float64)

    @property
    def peak_load(self) -> float | None:
        """Load of the highest throughput, sqrt((1 - sigma) / kappa); None where it never falls."""
        if self.coherency <= 0:
            return None
        return max(math.sqrt(max(1 - self.contention, 0) / self.coherency), 1.0)

    @property
    def words(self) -> str:
        """The parameters with their meaning, in one line."""
        falls = "never falls" if self.peak_load is None else f"falls beyond {self.peak_load:.0f}"
        return (
            f"lambda {self.rate:,.0f}/s alone, sigma {self.contention:.4f} queues, kappa {self.coherency:.2g} "
            f"({falls}); fit error {100 * self.error:.1f} %"
        )


class _Points(Struct, frozen=True, eq=False):
    """What is fitted: some columns of the basis (1, N - 1, N (N - 1)), loads and throughputs."""

    basis: Floats
    n: Floats
    x: Floats

    def fitted(self, parameters: Floats) -> Floats:
        return np.asarray(self.n / (self.basis @ parameters), np.float64)

    def sse(self, parameters: Floats) -> float:
        return float(((self.fitted(parameters) / self.x - 1) ** 2).sum())

    def start(self) -> Floats:
        """Coefficients of the linear form, each point weighted so that its deviation is relative."""
        weighted = self.basis * (self.x / self.n)[:, None]
        return np.asarray(np.linalg.lstsq(weighted, np.ones_like(self.n), rcond=None)[0], np.float64)

    def step(self, parameters: Floats) -> Floats:
        """Gauss-Newton step for the relative deviations of throughput."""
        fitted = self.fitted(parameters)
        slopes = -(fitted**2 / self.n / self.x)[:, None] * self.basis
        return np.asarray(np.linalg.lstsq(slopes, 1 - fitted / self.x, rcond=None)[0], np.float64)


def fit_usl(loads: Floats, throughputs: Floats) -> Usl | None:
    """Fit by least squares of relative deviations, sigma and kappa at least 0; None with fewer than 4 loads.

    N / X is linear in (1, N - 1, N (N - 1)) with the coefficients (1, sigma, kappa) / lambda: that gives the start,
    from which Gauss-Newton steps minimise the deviation of X itself. Coefficients that would be negative are 0: each
    choice of them is tried.
    """
    used = throughputs > 0
    n, x = loads[used], throughputs[used]
    if len(np.unique(n)) < _LEAST_LOADS:
        return None
    points = _Points(np.stack([np.ones_like(n), n - 1, n * (n - 1)], axis=1), n, x)
    fits = (_fit_free(points, [0, *free]) for size in range(3) for free in itertools.combinations((1, 2), size))
    good = [fit for fit in fits if fit is not None]
    if not good:
        return None
    return _named(points, min(good, key=points.sse))


def _fit_free(points: _Points, free: list[int]) -> Floats | None:
    """Fit with these coefficients free and the others 0; None where one comes out negative."""
    part = _Points(points.basis[:, free], points.n, points.x)
    parameters: Floats | None = part.start()
    if parameters is None or (parameters <= 0).any():
        return None
    full = np.zeros(_PARAMETERS)
    for _ in range(_STEPS):
        full[free] = parameters
        parameters = _better(part, parameters)
        if parameters is None:
            break
    return full


def _better(part: _Points, parameters: Floats) -> Floats | None:
    """Take the step, or the half of it, and so on; None where nothing improves."""
    step, sse = part.step(parameters), part.sse(parameters)
    candidates = (parameters + step / 2**halving for halving in range(8))
    return next((each for each in candidates if (each > 0).all() and part.sse(each) < sse * (1 - 1e-9)), None)


def _named(points: _Points, parameters: Floats) -> Usl:
    first, second, third = parameters.tolist()
    x, sse = points.x, points.sse(parameters)
    error = math.sqrt(sse / max(len(x) - int((parameters > 0).sum()), 1))
    deviations, spread = x - points.fitted(parameters), float(((x - x.mean()) ** 2).sum())
    r_squared = 1 - float((deviations**2).sum()) / spread if spread else 0.0
    return Usl(1 / first, second / first, third / first, error, r_squared)
