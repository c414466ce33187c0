"""Derivation of a frame from two samples: the only code that turns raw counters into figures."""

from __future__ import annotations

import math

from collectors.all_subjects import derive_tables
from collectors.model import Frame, Sample
from collectors.subject import Interval, interval_s
from collectors.tables.block.derive.looking import looking_of
from collectors.tables.block.derive.traced import losses_of
from collectors.topology.state_age import state_age_s


def derive(previous: Sample | None, current: Sample) -> Frame:
    """Derive every figure of the interval between two samples; pure.

    NaN marks unknown values: everything but gauges on the first sample, for new rows and after a counter reset, and
    everything derived from a missing value. Rates divide by CLOCK_MONOTONIC, so that steps of the wall clock do not
    matter and rates over a gap are right; if that clock did not advance the sample counts as a first one. Peaks and
    histograms belong to the time since the sample that was read before `current`.

    Args:
        previous: the previous sample of the recording, None at a start.
        current: the sample at the end of the interval.
    """
    elapsed_s = interval_s(previous, current)
    if math.isnan(elapsed_s):
        previous = None
    return Frame(
        time_ns=current.time_ns,
        monotonic_ns=current.monotonic_ns,
        elapsed_s=elapsed_s,
        tables=derive_tables(Interval(previous, current, elapsed_s)),
        topology=current.topology,
        events=current.events,
        late_s=current.late_ns / 1e9,
        cost_pct=100.0 * current.cost_ns / 1e9 / elapsed_s,
        looking=looking_of(previous, current, elapsed_s),
        losses=losses_of(current),
        states_age_s=state_age_s(current.tables),
    )
