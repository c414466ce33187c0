"""What the parts of the load's waterfall share: time ranges of series, and which I/Os are the load's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from collectors.series import Series

FEWER, SHARED, TOO_MANY = 0.95, 1.1, 1.5
"""I/Os of the devices per I/O of the load: below, a cache answers some; above, others use the devices, or I/Os are
split."""

SeriesOf = Callable[[str, str], Series | None]
"""Returns the history of a row by frame table and key."""
Stretch = tuple[int, int]
"""After the first and up to the second, in nanoseconds."""


def within(series: Series, stretch: Stretch) -> NDArray[np.bool_]:
    """Return which intervals of a series ended in a time range."""
    return (series.times_ns > stretch[0]) & (series.times_ns <= stretch[1])
