"""Outstanding I/Os from the time of the completed ones (Little's law), with its two blind spots closed."""

from __future__ import annotations

import numpy as np

from collectors.derive.counter_deltas import Values


def outstanding_io_s(completed: Values, time_s: Values, held: Values, elapsed_s: float) -> Values:
    """Outstanding I/Os times seconds over an interval.

    A completed I/O was outstanding for the whole interval at most, however long it took. While nothing completes, what
    was in flight at both ends was so all the time: a stall, on which the time of the completed is mute.

    Args:
        completed: I/Os that completed in the interval.
        time_s: their time from start to completion, summed.
        held: the smaller of the outstanding I/Os at both ends.
        elapsed_s: length of the interval.
    """
    return np.where(completed == 0, held * elapsed_s, np.minimum(time_s, completed * elapsed_s))
