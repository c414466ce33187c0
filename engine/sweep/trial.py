"""What one measurement of one load gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field

from engine.statistics.batch_means import WANTED_HALF_WIDTH, Stop
from engine.statistics.warmup import Trend
from engine.study.decoded import Count, Figure
from engine.study.load import Observed
from engine.study.trial_file import trial_kind
from engine.sweep.target_share import TargetShare

LITTLE_HOLDS = 0.05
"""Largest deviation from Little's law at which figures fit each other."""


def little_deviation(in_flight: float, iops: float, latency_ns: float) -> float | None:
    """Relative deviation of the I/Os in flight from throughput x latency; None without latency.

    Little 1961, A proof for the queuing formula L = lambda W. Above 0, more are in flight than the latencies explain:
    some have outlasted the measurement.
    """
    explained = iops * latency_ns / 1e9
    return in_flight / explained - 1 if explained > 0 else None


class SearchStage(StrEnum):
    """Parts of the search, in their order; each follows from what those before it measured."""

    LADDER = "ladder"
    BISECT = "bisect"
    BISECT_AGAIN = "bisect again"
    REPEAT = "repeat"


_StageName = Annotated[str, Meta(pattern=f"^({'|'.join(SearchStage)})$")]


class Trial(Struct, frozen=True, forbid_unknown_fields=True):
    """One epoch with the knobs of one point, after its warm-up; files and recordings have its fields as their keys.

    A field added later has a default, so that older files stay readable.
    """

    load: Figure
    """Value on the axis of the load."""
    in_flight: Figure
    """I/Os outstanding on average."""
    iops: Figure
    latency_ns: Figure
    """Mean."""
    half_width: Figure = 0.0
    """Half-width of the 95 % interval of `iops`, as a share of it."""
    latencies_ns: Mapping[str, Figure] = field(default_factory=dict)
    """p50, p90, p99, p99.9 and max, where there are enough I/Os."""
    bytes_per_s: Figure = 0.0
    start_s: Figure = 0.0
    """Time from the start of the sweep."""
    duration_s: Figure = 0.0
    ios: Count = 0
    errors: Count = 0
    stop: Stop = Stop.PRECISE
    is_settled: bool = True
    """Whether throughput no longer moved in one direction when it was measured."""
    trend: Trend = Trend.NONE
    failing: tuple[str, ...] = ()
    """Targets whose I/Os failed meanwhile; such a trial is in no curve."""
    stage: _StageName = ""
    """Stage of the search in which it was measured."""
    targets: tuple[TargetShare, ...] = ()
    """Each target of a load with several; empty where trials of an earlier version are read."""
    average_peak_ns: Figure | None = None
    """Mean of the per-second maxima of the latency."""
    service_ns: Figure | None = None
    """Mean time from submit to reap in an open loop, where latencies count from when an I/O was due; None elsewhere."""
    host_cpu_s_per_gb: Figure | None = None
    """CPU time of the whole host per 10^9 bytes."""
    engine_cpus: Figure | None = None
    """CPUs that the engine's threads used."""
    engine_share: Figure | None = None
    """Share of their time that the engine's threads used; None where that says nothing of their speed."""
    engine_waiting_share: Figure | None = None
    """Share of that time that they were ready and waited for a processor (engine/results/waiting.py)."""
    host_busy_pct: Figure | None = None
    """Busy share of all processors, for any process."""
    devices: Observed | None = None
    """What the devices below the targets did meanwhile; None if they were not sampled."""

    def __hash__(self) -> int:
        return hash((self.start_s, self.load, self.iops))

    @property
    def is_noisy(self) -> bool:
        """Whether it ended, by settled noise or by its longest time, before the interval was as narrow as wanted.

        Without any interval it has too few I/Os to tell.
        """
        return self.stop is Stop.NOISY or (self.stop is Stop.TIME and WANTED_HALF_WIDTH < self.half_width < 1.0)

    @property
    def is_short(self) -> bool:
        """Whether it ended with too few I/Os for its percentiles, and is else as precise as wanted."""
        return self.stop is Stop.TIME and not self.is_noisy

    @property
    def little(self) -> float | None:
        """Relative deviation of the I/Os in flight from throughput x latency (Little's law); None without latency.

        An I/O that is due is not in flight before it is submitted.
        """
        time_ns = self.latency_ns if self.service_ns is None else self.service_ns
        return little_deviation(self.in_flight, self.iops, time_ns)

    def latency_of(self, metric: str) -> float | None:
        """Return the mean, a percentile or the largest latency in ns; None where there are too few I/Os for it."""
        return self.latency_ns if metric == "mean" else self.latencies_ns.get(metric)


def best_trial(trials: Sequence[Trial]) -> Trial | None:
    """Choose the highest throughput among the steady trials without failed I/Os; None without any."""
    used = [trial for trial in trials if trial.is_settled and not trial.failing and trial.iops > 0]
    return max(used, key=lambda trial: trial.iops, default=None)


TRIALS = trial_kind("lunscope.sweep-trials/1", Trial)
