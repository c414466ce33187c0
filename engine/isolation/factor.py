"""The isolation factor: how much of its response time a load keeps beside another one."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from msgspec import Struct

from engine.isolation.victim import VictimSecond

_LEAST_P99_PER_S = 150.0
"""Arrivals per second for a p99 of each second: with fewer, seconds have less than its 100 I/Os."""
_LEAST_SECONDS = 3
LOW_PERCENT = 5.0
"""Gating on the worst 1 % was too sensitive to what is not of the device (resctl-bench, PR 270)."""


class FactorOf(StrEnum):
    """Figure of a second that the factor is made of."""

    P99 = "p99"
    MEAN = "mean"


def figure_for(rate_iops: float) -> FactorOf:
    """Choose the figure by how many I/Os a second has."""
    return FactorOf.P99 if rate_iops >= _LEAST_P99_PER_S else FactorOf.MEAN


def value_ns(second: VictimSecond, figure: FactorOf) -> float | None:
    """Return the figure of one second; None with too few I/Os for it."""
    return second.p99_ns if figure is FactorOf.P99 else second.mean_ns


class Baseline(Struct, frozen=True):
    """The victim alone."""

    figure: FactorOf
    typical_ns: float
    """Median of its seconds."""

    def factor(self, second: VictimSecond) -> float | None:
        """Response time alone as a share of that in a second: 1 is unaffected, 0 that nothing completed.

        None where I/Os completed, but too few for the figure.
        """
        if not second.ios:
            return 0.0
        value = value_ns(second, self.figure)
        return None if not value else self.typical_ns / value

    def low_factor(self, seconds: Sequence[VictimSecond]) -> float | None:
        """Return the 5th percentile over seconds; None with fewer than 3, or where more than half have none."""
        factors = [factor for second in seconds if (factor := self.factor(second)) is not None]
        if len(factors) < max(_LEAST_SECONDS, len(seconds) / 2):
            return None
        return float(np.percentile(factors, LOW_PERCENT))


def baseline_of(seconds: Sequence[VictimSecond], figure: FactorOf) -> Baseline | None:
    """Take the typical second of the victim alone; None with too few I/Os."""
    values = [value for second in seconds if (value := value_ns(second, figure)) is not None]
    if len(values) < _LEAST_SECONDS:
        return None
    return Baseline(figure, float(np.median(values)))
