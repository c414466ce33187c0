"""What any number of disks gives, by those that were measured: in proportion, less, or up to a limit that all share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS_PER_OCTAVE = 64
_SHARPNESS = (1.0, 2.0, 5.0, 40.0)
"""How sharp a bend is, as that of curves over a load: 40 is nearly a corner."""
_POWERS = tuple(np.linspace(0, 1, 65).tolist())
_FLOOR = 0.007
"""Standard error of what a number of disks gives, at the least: its curve over the depth is not the true one."""
_PENALTY = 2.0
"""Added to the sum of squares for each parameter (Akaike), so that a bend is seen with evidence only."""
_WITHIN = 3.84
"""Curves whose sum of squares is more by no more than this fit as well, with 95 % (chi squared of one parameter)."""


class Capacity(Struct, frozen=True):
    """What one number of disks was measured to give."""

    disks: int
    iops: float
    error: float
    """Standard error, as a share of it."""


class ScaleRange(Struct, frozen=True):
    """What a number of disks gives: by the best curve, and the ends of what all curves that fit say."""

    best: float
    low: float
    high: float


class _Shapes(Struct, frozen=True, eq=False):
    """Curves over the number of disks without their level: ln X = level + power n - bend, with n = ln(disks)."""

    power: Floats
    knee: Floats
    """Logarithm of the disks; inf without a bend."""
    sharpness: Floats
    parameters: Floats

    @classmethod
    def at(cls, n: Floats) -> _Shapes:
        """Make all shapes between the first and the last of some numbers of disks."""
        return cls(*np.array(list(_parameters(n))).T)

    def of(self, chosen: NDArray[np.intp]) -> _Shapes:
        """Take some of them."""
        return _Shapes(self.power[chosen], self.knee[chosen], self.sharpness[chosen], self.parameters[chosen])

    def y(self, n: Floats) -> Floats:
        """Shape (curves, numbers of disks)."""
        beyond = self.sharpness[:, None] * (n - self.knee[:, None])
        bend = (np.maximum(beyond, 0) + np.log1p(np.exp(-np.abs(beyond)))) / self.sharpness[:, None]
        return np.asarray(self.power[:, None] * n - np.where(np.isinf(beyond), 0.0, bend), np.float64)


class DiskScale:
    """The curves that fit; of one number of disks only that is known."""

    def __init__(self, measured: Sequence[Capacity]) -> None:
        self._measured = {each.disks: each for each in measured}
        self.first, self.last = measured[0].disks, measured[-1].disks
        self._n = np.log([float(each.disks) for each in measured])
        self._y = np.log([each.iops for each in measured])
        errors = np.maximum([each.error for each in measured], _FLOOR)
        self._error = float(errors.max())
        self._fit(1 / errors**2)

    def _fit(self, weights: Floats) -> None:
        shapes = _Shapes.at(self._n)
        drawn = shapes.y(self._n)
        levels = ((self._y - drawn) @ weights) / weights.sum()
        squares = (self._y - drawn - levels[:, None]) ** 2 @ weights
        best = int((squares + _PENALTY * shapes.parameters).argmin())
        kept = np.flatnonzero(squares <= squares.min() + _WITHIN)
        chosen = np.concatenate([[best], kept[kept != best]])
        self._shapes = shapes.of(chosen)
        self._levels = levels[chosen]
        self._left = self._y - drawn[best] - levels[best]

    def below(self, disks: int) -> int:
        """Return the largest number of disks that was measured up to one."""
        return max(each for each in self._measured if each <= disks)

    def most(self, disks: int) -> ScaleRange:
        """Return what so many disks give; never more in proportion than fewer were measured to give."""
        below = self._measured[self.below(disks)]
        if below.disks == disks:
            found = np.array([below.iops])
        else:
            n = np.array([math.log(disks)])
            y = self._shapes.y(n)[:, 0] + self._levels + np.interp(n, self._n, self._left)
            found = np.minimum(np.exp(y), below.iops * disks / below.disks)
        share = 2 * self._error
        return ScaleRange(float(found[0]), float(found.min()) * (1 - share), float(found.max()) * (1 + share))


def _parameters(n: Floats) -> Iterator[tuple[float, float, float, float]]:
    """Yield power, knee, sharpness and number of parameters of each shape."""
    yield (1.0, math.inf, 1.0, 0.0)
    yield from ((power, math.inf, 1.0, 1.0) for power in _POWERS)
    for knee in np.arange(n[0], n[-1] + 1e-9, math.log(2) / _STEPS_PER_OCTAVE):
        for sharpness in _SHARPNESS:
            yield (1.0, float(knee), sharpness, 1.0 if sharpness == _SHARPNESS[-1] else 2.0)
