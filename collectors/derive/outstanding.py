"""Outstanding I/Os from the time of the completed ones (Little's law), corrected for long I/Os and stalls."""

from __future__ import annotations

import numpy as np

from collectors.derive.counter_deltas import Values


def outstanding_io_s(completed: Values, time_s: Values, held: Values, elapsed_s: float) -> Values:
    """Outstanding I/Os times seconds over an interval.

    A completed I/O was outstanding for the whole interval at most, however long it took. If nothing completes, the I/Os
    in flight at both ends were outstanding throughout: a stall, which the time of completed I/Os does not show.

    Args:
        completed: I/Os that completed in the interval.
        time_s: their time from start to completion, summed.
        held: the smaller of the outstanding I/Os at both ends.
        elapsed_s: length of the interval.
    """
    return np.where(completed == 0, held * elapsed_s, np.minimum(time_s, completed * elapsed_s))
