"""What repeated measurements show of the noise: an interval from within one knows nothing of what changes meanwhile."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from msgspec import Struct

from engine.statistics.student_t import t_quantile
from engine.sweep.trial import Trial

_CONFIDENCE = 0.95
_LEAST_FREEDOM = 3
"""Fewest degrees of freedom: with fewer the spread is chance, and Student's t would make any of them look noisy."""


class Repeats(Struct, frozen=True):
    """How far measurements of the same load differ, over all loads of a curve together."""

    deviation: float
    """Standard deviation of the IOPS of one measurement, as a share of them."""
    freedom: int
    """Degrees of freedom of it: measurements beyond the first of each load."""

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> Repeats | None:
        """Pool the loads, in logarithms; None with too few repeats, and failing targets count for nothing."""
        by_load: dict[float, list[float]] = {}
        for trial in trials:
            if trial.iops > 0 and not trial.failing:
                by_load.setdefault(trial.load, []).append(math.log(trial.iops))
        freedom = sum(len(values) - 1 for values in by_load.values())
        if freedom < _LEAST_FREEDOM:
            return None
        squares = sum((value - statistics.fmean(values)) ** 2 for values in by_load.values() for value in values)
        return cls(math.sqrt(squares / freedom), freedom)

    def half_width(self, measurements: int) -> float:
        """Half of the 95 % interval of the mean of a number of measurements, as a share of it; 1 at most."""
        return min(t_quantile(_CONFIDENCE, self.freedom) * self.deviation / math.sqrt(measurements), 1.0)


def spread_of(trials: Sequence[Trial], repeats: Repeats | None) -> float:
    """How far the IOPS of one load are certain, as a share of them: by its measurements, and by what repeats show.

    Where there are too few repeats of all loads it is half of the range of those of this one.
    """
    iops = [trial.iops for trial in trials]
    middle = statistics.median(iops)
    half_range = (max(iops) - min(iops)) / 2 / middle if middle else 0.0
    between = half_range if repeats is None else repeats.half_width(len(trials))
    return max(between, *(trial.half_width for trial in trials))
