"""Shares in percent that together make a whole."""

from __future__ import annotations

from collections.abc import Sequence

ROUNDING_PERCENT = 1e-6
MIX_TOLERANCE_PERCENT = 0.5
"""By how much shares may miss 100: three times 33.3 is meant as thirds."""


def adds_up(shares_pct: Sequence[float]) -> bool:
    """Whether shares are meant as a whole; not if one is no number."""
    return abs(sum(shares_pct) - 100) <= MIX_TOLERANCE_PERCENT


def scaled_to_100(shares_pct: Sequence[float]) -> tuple[float, ...]:
    """Scale shares that add up to about 100; those that do exactly stay as they are."""
    total = sum(shares_pct)
    if abs(total - 100) < ROUNDING_PERCENT:
        return tuple(shares_pct)
    return tuple(share * 100 / total for share in shares_pct)
