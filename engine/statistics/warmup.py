"""Where the warm-up of a series of measurements ends: MSER-5 (White, Cobb and Spratt, 2000)."""

from __future__ import annotations

import math
from enum import StrEnum

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

_BATCH = 5
"""Values per batch mean, the 5 of MSER-5: it keeps one outlier from deciding."""
_LEAST_BATCHES = 10
"""Fewest batches for which the minimum of the criterion says something."""
_SETTLED = 0.4
"""Share of the series up to which a cut says that the rest is steady."""
_SAME = 0.05
"""Relative difference of what was cut and what was kept up to which nothing has warmed up or slowed down."""


_TREND_BATCHES = 20
_SURE = 4.0
"""Standard errors of a slope that is no chance."""


class Trend(StrEnum):
    """What came before the cut, against what is kept."""

    NONE = "none"
    WARMING = "warming up"
    SLOWING = "slowing down"


class WarmUp(Struct, frozen=True):
    """Result of the cut."""

    cut: int
    """How many values from the first are dropped."""
    is_settled: bool
    """False: the best cut is where the search ends, or there are too few values; the series is not steady yet."""
    trend: Trend
    """Trend of the values; more is better, as for IOPS."""


def cut_warm_up(values: NDArray[np.float64]) -> WarmUp:
    """Find how much to drop from the start of a series so that the mean of the rest is known best.

    The cut d minimises the squared standard error of the kept batch means, var(d) / (n - d). Only cuts in the first
    half are tried: of the last batches some are always alike by chance. A series that still moves has its best cut at
    the end of the search; a steady one has it there by chance in a few of a hundred cases, and is measured on then.
    """
    batches = len(values) // _BATCH
    if batches < _LEAST_BATCHES:
        return WarmUp(0, is_settled=False, trend=Trend.NONE)
    means = values[: batches * _BATCH].reshape(batches, _BATCH).mean(axis=1)
    best = int(np.argmin(_criterion(means)[: batches // 2 + 1]))
    return WarmUp(best * _BATCH, is_settled=best <= _SETTLED * batches, trend=_trend(means, best))


def trend_of(values: NDArray[np.float64]) -> Trend:
    """Say whether a series moves in one direction by more than 5 % of its mean, and surely so.

    A straight line through 20 batch means, and Student's t of its slope: chance makes one of 4 in 1,000 cases or fewer.
    """
    length = len(values) // _TREND_BATCHES
    if length == 0:
        return Trend.NONE
    means = values[: length * _TREND_BATCHES].reshape(_TREND_BATCHES, length).mean(axis=1)
    steps = np.arange(_TREND_BATCHES) - (_TREND_BATCHES - 1) / 2
    slope = float(steps @ means / (steps @ steps))
    left = means - means.mean() - slope * steps
    error = math.sqrt(float(left @ left) / (_TREND_BATCHES - 2) / float(steps @ steps))
    if abs(slope) <= _SURE * error or abs(slope) * _TREND_BATCHES <= _SAME * abs(float(means.mean())):
        return Trend.NONE
    return Trend.WARMING if slope > 0 else Trend.SLOWING


def _criterion(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared standard error of the mean of what is left after each cut."""
    left = np.arange(len(means), 0, -1, dtype=np.float64)
    centred = means - means.mean()
    sums, squares = (np.cumsum(each[::-1])[::-1] for each in (centred, centred**2))
    spread = np.maximum(squares - sums**2 / left, 0)
    return np.asarray(spread / left**2, np.float64)


def _trend(means: NDArray[np.float64], cut: int) -> Trend:
    if cut == 0:
        return Trend.NONE
    before, after = float(means[:cut].mean()), float(means[cut:].mean())
    if abs(before - after) <= _SAME * abs(after):
        return Trend.NONE
    return Trend.WARMING if before < after else Trend.SLOWING
