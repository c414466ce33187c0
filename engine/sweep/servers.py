"""Does a device behave like N servers of service time S? The law X = min(L, N) / S over a measured curve."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from engine.sweep.trial import Trial

_FITS = 0.05
"""Largest deviation of the throughput at any load."""
_BEYOND = 1.5
"""How far beyond N the outstanding I/Os have to go: at N itself throughput may still rise."""
_LEAST_LOADS = 4
_MOST = 4096
"""Servers that are tried at most."""


class Servers(Struct, frozen=True):
    """A queue in front of equal servers that reproduces the curve."""

    count: int
    service_ns: float
    """Mean time that a server takes for an I/O."""
    deviation: float
    """Of the throughput at the load where the law fits worst, as a share of it."""

    @property
    def words(self) -> str:
        """The law, in one line."""
        servers = "1 server" if self.count == 1 else f"{self.count:,} servers"
        return (
            f"behaves like {servers} of {_ms(self.service_ns)} ms: {self.count / self.service_ns * 1e9:,.0f} IOPS with "
            f"{self.count:,} or more outstanding, within {100 * self.deviation:.1f} % at every load"
        )


def fit_servers(trials: Sequence[Trial]) -> Servers | None:
    """Find the number of servers whose law X = min(L, N) / S is within 5 % at every load; None where none is.

    L is the measured number of I/Os in flight. Loads below and beyond N are needed, as N is what tells them apart; of
    one server the lowest load is at N already.
    """
    loads = sorted({trial.load for trial in trials})
    if len(loads) < _LEAST_LOADS:
        return None
    by_load = [[trial for trial in trials if trial.load == load] for load in loads]
    in_flight = np.array([statistics.median(trial.in_flight for trial in each) for each in by_load])
    iops = np.array([statistics.median(trial.iops for trial in each) for each in by_load])
    if (iops <= 0).any() or (in_flight <= 0).any():
        return None
    counts = np.arange(1, min(int(in_flight.max() / _BEYOND), _MOST) + 1)
    if not len(counts):
        return None
    service_s = np.minimum(in_flight, counts[:, None]) / iops
    middle_s = (service_s.max(axis=1) + service_s.min(axis=1)) / 2
    deviations = (service_s.max(axis=1) - service_s.min(axis=1)) / 2 / middle_s
    best = int(deviations.argmin())
    if deviations[best] > _FITS or in_flight.min() > max(counts[best], _BEYOND):
        return None
    return Servers(int(counts[best]), float(middle_s[best]) * 1e9, float(deviations[best]))


def _ms(time_ns: float) -> str:
    return f"{time_ns / 1e6:.3g}"
