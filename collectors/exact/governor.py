"""Steps down from exact time where it costs too much, and back up when that would cost little."""

from __future__ import annotations

import os
from enum import Enum, auto

from collectors.model import Looking, Sample
from collectors.tables.block.derive.looking import looking_of
from collectors.tables.block.schema import DISK
from collectors.tables.host.schema import HOST

OVER_S = 5.0
"""How long each interval must have cost too much: a burst changes nothing."""
CALM_SHARE = 0.5
"""Share of the limit below which exact time would have to cost, by the I/Os that the kernel counts, to begin again."""
CALM_S = 60.0
LONGEST_CALM_S = 3600.0
"""How long it would have to: twice as long after each time, so that it does not come and go."""


class CostRuling(Enum):
    """What to do about exact time."""

    GO_ON = auto()
    STOP = auto()
    BEGIN_AGAIN = auto()


class Governor:
    """Compares what the programs cost with a limit, sample by sample.

    They cost too much if they take more than the limit of one CPU and of all CPU time that the host spends: the first
    is what nobody feels, the second the share of the IOPS that they can cost where CPUs are what limits them.
    """

    def __init__(self, most_pct: float) -> None:
        self._most_pct = most_pct
        self._previous: Sample | None = None
        self._ns_per_io = 0.0
        self._over_s = self._calm_s = 0.0
        self._needed_calm_s = CALM_S
        self.reason = ""
        """Why exact time was stopped last."""

    def judge(self, sample: Sample, *, is_stopped: bool) -> CostRuling:
        """Judge the interval that a sample ends; without a limit all goes on."""
        previous, self._previous = self._previous, sample
        if previous is None or not self._most_pct:
            return CostRuling.GO_ON
        elapsed_s = (sample.monotonic_ns - previous.monotonic_ns) / 1e9
        if is_stopped:
            return self._judge_load(previous, sample, elapsed_s)
        cost = looking_of(previous, sample, elapsed_s)
        return CostRuling.GO_ON if cost is None else self._judge_cost(cost, _spent_s(previous, sample, elapsed_s))

    def _judge_cost(self, cost: Looking, spent_s: float) -> CostRuling:
        share_pct = 100.0 * cost.programs_s / spent_s if spent_s > 0 else 0.0
        if not min(cost.programs_pct, share_pct) > self._most_pct:
            self._over_s = 0.0
            return CostRuling.GO_ON
        self._over_s += cost.elapsed_s
        if self._over_s < OVER_S:
            return CostRuling.GO_ON
        self._ns_per_io, self._over_s, self._calm_s = cost.ns_per_io, 0.0, 0.0
        basis = "measured" if cost.is_measured else "estimated"
        self.reason = (
            f"its programs took {cost.programs_pct:.1f} % of a CPU, {share_pct:.1f} % of the CPU time of the host "
            f"({basis}, {cost.ns_per_io:.0f} ns per I/O), more than exact_time.most_cost_pct = {self._most_pct:g}"
        )
        return CostRuling.STOP

    def _judge_load(self, previous: Sample, sample: Sample, elapsed_s: float) -> CostRuling:
        would_take_s = (_ios(sample) - _ios(previous)) * self._ns_per_io / 1e9
        is_calm = elapsed_s > 0 and 100.0 * would_take_s / elapsed_s < CALM_SHARE * self._most_pct
        self._calm_s = self._calm_s + elapsed_s if is_calm else 0.0
        if self._calm_s < self._needed_calm_s:
            return CostRuling.GO_ON
        self._needed_calm_s = min(2 * self._needed_calm_s, LONGEST_CALM_S)
        self._calm_s = 0.0
        return CostRuling.BEGIN_AGAIN


def _spent_s(previous: Sample, sample: Sample, elapsed_s: float) -> float:
    """CPU time of the host in an interval, all of it where the kernel does not say."""
    before, now = previous.tables.get(HOST.name), sample.tables.get(HOST.name)
    if before is None or now is None:
        return elapsed_s * (os.cpu_count() or 1)
    columns = ("cpu_user_us", "cpu_system_us", "cpu_irq_us")
    old, new = (sum(int(table.column(name)[0]) for name in columns) for table in (before, now))
    return max(0, new - old) / 1e6


def _ios(sample: Sample) -> int:
    table = sample.tables.get(DISK.name)
    return 0 if table is None else sum(int(table.column(name).sum()) for name in ("reads", "writes", "discards"))
