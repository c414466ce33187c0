"""The age of path states as text."""

from __future__ import annotations

import math


def state_age(age_s: float) -> str:
    """Suffix with the age of the states: " (as of 2 s ago)"; empty if unknown."""
    return "" if math.isnan(age_s) else f" (as of {age_s:.0f} s ago)" if age_s >= 1 else " (as of now)"
