"""Steady state by the rule of the SNIA Solid State Storage Performance Test Specification (SSS PTS).

The figure of 5 successive rounds of equal length, the measurement window, is steady if its excursion (largest less
smallest value) is at most 20 % of its mean, and the line that fits it best changes by at most 10 % of the mean over
the window.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

WINDOW_ROUNDS = 5
MOST_EXCURSION = 0.2
MOST_SLOPE = 0.1
MOST_ROUNDS = 25
"""Rounds after which the specification lets a test end without a steady state."""


class SteadyWindow(Struct, frozen=True):
    """The last rounds of one figure; NaN where the mean is 0 or a round had no figure."""

    values: tuple[float, ...]
    mean: float
    excursion: float
    """Largest less smallest value, as a share of the mean."""
    slope: float
    """Change of the line of least squares from the first to the last round, as a share of the mean."""

    @property
    def is_steady(self) -> bool:
        """Whether both conditions hold."""
        return self.excursion <= MOST_EXCURSION and abs(self.slope) <= MOST_SLOPE


def steady_window(values: Sequence[float]) -> SteadyWindow:
    """Judge the rounds of one window.

    Raises:
        ValueError: there are fewer than 2.
    """
    if len(values) < 2:
        raise ValueError(f"{len(values)} rounds: a window has at least 2")
    series = np.asarray(values, np.float64)
    steps = np.arange(len(series)) - (len(series) - 1) / 2
    mean = float(series.mean())
    if not mean > 0:
        return SteadyWindow(tuple(values), mean, float("nan"), float("nan"))
    slope = float(steps @ series / (steps @ steps))
    return SteadyWindow(
        tuple(values), mean, float(series.max() - series.min()) / mean, slope * (len(series) - 1) / mean
    )


class SteadyState(Struct, frozen=True):
    """What the rule says after some rounds, of one figure or several that must be steady together."""

    rounds: int = 0
    """Complete ones."""
    windows: tuple[SteadyWindow, ...] = ()
    """The last of each figure; empty before there are 5 rounds."""
    steady_from: int | None = None
    """Round, from 1, at whose end the rule held and has held at the end of each round since."""
    lost_at: int | None = None
    """Last round at whose end the rule no longer held after it had."""

    @property
    def is_checked(self) -> bool:
        """Whether there were enough rounds to say anything."""
        return bool(self.windows)

    @property
    def is_steady(self) -> bool:
        """Whether the rule holds now."""
        return self.steady_from is not None


class SteadyRounds:
    """Applies the rule round by round, in constant memory."""

    def __init__(self) -> None:
        self._values: deque[tuple[float, ...]] = deque(maxlen=WINDOW_ROUNDS)
        self._state = SteadyState()

    @property
    def state(self) -> SteadyState:
        """What the rule says of the rounds so far."""
        return self._state

    def add(self, figures: tuple[float, ...]) -> None:
        """Add a complete round, with one value for each figure; their number stays the same."""
        before, rounds = self._state, self._state.rounds + 1
        self._values.append(figures)
        if len(self._values) < WINDOW_ROUNDS:
            self._state = SteadyState(rounds)
            return
        windows = tuple(steady_window(values) for values in zip(*self._values, strict=True))
        if all(window.is_steady for window in windows):
            steady_from = rounds if before.steady_from is None else before.steady_from
            self._state = SteadyState(rounds, windows, steady_from, before.lost_at)
        else:
            lost_at = before.lost_at if before.steady_from is None else rounds
            self._state = SteadyState(rounds, windows, None, lost_at)
