"""How old the states of paths are, in words."""

from __future__ import annotations

import math


def state_age(age_s: float) -> str:
    """Say when the states were read, to stand behind them: " (as of 2 s ago)"; empty where nothing tells."""
    return "" if math.isnan(age_s) else f" (as of {age_s:.0f} s ago)" if age_s >= 1 else " (as of now)"
