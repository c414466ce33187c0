"""Quantiles of Student's t distribution, from its closed form for whole degrees of freedom."""

from __future__ import annotations

import functools
import math


def central_share(t: float, freedom: int) -> float:
    """Probability that a t variable lies within -t..t (Abramowitz and Stegun 26.7.3 and 26.7.4).

    Raises:
        ValueError: there is less than one degree of freedom.
    """
    if freedom < 1:
        raise ValueError(f"{freedom} degrees of freedom: at least 1")
    angle = math.atan2(t, math.sqrt(freedom))
    cosine, sine, odd = math.cos(angle), math.sin(angle), freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for step in range(2 + odd, freedom + 1, 2):
        total += term
        term *= (step - 1) / step * cosine * cosine
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


@functools.cache
def t_quantile(confidence: float, freedom: int) -> float:
    """Half-width, in standard errors, of the two-sided interval with this confidence.

    Raises:
        ValueError: confidence is not between 0 and 1, or there is less than one degree of freedom.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence}: between 0 and 1")
    low, high = 0.0, 1.0
    while central_share(high, freedom) < confidence:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if central_share(middle, freedom) < confidence else (low, middle)
    return high
