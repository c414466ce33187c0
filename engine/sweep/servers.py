"""Does a device behave like N servers of service time S? The law X = min(L, N) / S over a measured curve."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from engine.sweep.trial import Trial

_FITS = 0.05
"""Typical relative deviation of the throughput from the law, up to which it is said."""
_WORST = 0.10
"""The same at the load where it fits worst."""
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
    """Root of the mean squared relative deviation of the throughputs."""

    @property
    def words(self) -> str:
        """The law, in one line."""
        servers = "1 server" if self.count == 1 else f"{self.count:,} servers"
        return (
            f"behaves like {servers} of {_ms(self.service_ns)} ms: {self.count / self.service_ns * 1e9:,.0f} IOPS with "
            f"{self.count:,} or more outstanding, fit error {100 * self.deviation:.1f} %"
        )


def fit_servers(trials: Sequence[Trial]) -> Servers | None:
    """Find the number of servers whose law X = min(L, N) / S fits the curve within 5 %; None where none does.

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
    mean_s = service_s.mean(axis=1)
    off = service_s / mean_s[:, None] - 1
    deviations = np.sqrt((off**2).sum(axis=1) / (len(loads) - 1))
    best = int(deviations.argmin())
    fits = deviations[best] <= _FITS and np.abs(off[best]).max() <= _WORST
    if not fits or in_flight.min() > max(counts[best], _BEYOND):
        return None
    return Servers(int(counts[best]), float(mean_s[best]) * 1e9, float(deviations[best]))


def _ms(time_ns: float) -> str:
    return f"{time_ns / 1e6:.3g}"
