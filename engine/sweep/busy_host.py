"""Whether other work had the processors of the host, which is said beside an answer that it may have changed."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

_HOST_BUSY_PCT = 95.0
"""Limit of the badge for a busy host (engine/results/caveats.py)."""


def busy_host_pct(of_trials: Iterable[float | None]) -> float | None:
    """How busy the host was as a rule; None where it had processors left, or that is not known."""
    busy = [percent for percent in of_trials if percent is not None]
    usual = statistics.median(busy) if busy else 0.0
    return usual if usual >= _HOST_BUSY_PCT else None


def busy_host_text(percent: float) -> str:
    """Say so, and what to do."""
    return f"the host's processors were busy {percent:.0f} % of the time: repeat when the host is idle"
