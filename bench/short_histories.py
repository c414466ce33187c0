"""lunscope with histories a sixth as long, so that they are full after a minute or two of `make soak`.

Whatever still grows then is a leak: memory that only fills the histories ends to grow by itself.
"""

from __future__ import annotations

from functools import partial

from collectors.latency import history as latency_history
from collectors.latency import ticks as latency_ticks
from tui.history import charts, row_rings
from tui.history.intervals import BUDGET_BYTES, IntervalHistory
from tui.load import turn_intervals
from tui.main import main

SHARE = 6


def shorten() -> None:
    """Cut the lengths and sizes that bound the histories in memory."""
    for module in (row_rings, latency_history, latency_ticks, turn_intervals):
        vars(module)["MOST_TICKS"] //= SHARE
    vars(charts)["IntervalHistory"] = partial(IntervalHistory, BUDGET_BYTES // SHARE)


if __name__ == "__main__":
    shorten()
    main()
