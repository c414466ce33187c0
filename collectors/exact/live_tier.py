"""The exact tier of a live source: when it is attached, and how samples and host facts report it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from threading import Event as StopFlag
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from collectors.model import Rows, Sample, Tier, Topology
from collectors.sampling.reading_settings import LONGEST_ATTACH_S
from engine.errors import LunscopeError
from engine.replacing import replace

if TYPE_CHECKING:
    from collectors.exact.collector import ExactCollector
    from collectors.exact.tracer import Tracer
    from collectors.exact.tracer_supervisor import TracerSupervisor
import os
from enum import Enum, auto

from collectors.model import Looking
from collectors.tables.block.derive.looking import looking_of
from collectors.tables.block.schema import DISK
from collectors.tables.host.schema import HOST

SAID_AFTER_S = 2.0
"""How long attaching may take, where exact time is required, before a line says that lunscope waits for it."""
_STOP_CHECK_S = 0.2


class HostTier:
    """Adds the tier, and why a better one is unavailable, to the host facts; one object per topology and state."""

    def __init__(self) -> None:
        self._of: tuple[Topology, Tier, str] | None = None
        self._topology = Topology()

    def apply(self, topology: Topology, tier: Tier, refusal: str) -> Topology:
        """Return the topology with these facts; the same object until something changes."""
        host = topology.host
        if host.tier is tier and not refusal:
            return topology
        if self._of is None or self._of[0] is not topology or self._of[1:] != (tier, refusal):
            notices = (*host.notices, *([f"no exact time: {refusal}"] if refusal else []))
            self._of = topology, tier, refusal
            self._topology = replace(topology, host=replace(host, tier=tier, notices=notices))
        return self._topology


class LiveTier:
    """Attaches a tracer if `wanted` is "auto" or "exact"; before the first sample only if that sample may wait.

    Attaching takes 0.1 s of CPU. A first screen does not wait for it; a report waits up to `patience_s`, so that all
    its figures are of one tier, and where exact time was asked for as long as attaching takes on this host.
    """

    def __init__(
        self,
        wanted: str,
        patience_s: float,
        open_tracer: Callable[[], Tracer],
        disks: Callable[[], Rows],
        topology: Callable[[], Topology],
        *,
        procfs: str = "/proc",
        in_flight: Callable[[], NDArray[np.uint64]] = lambda: np.zeros(0, np.uint64),
        say: Callable[[str], None] = lambda _text: None,
        most_cost_pct: float = 0.0,
    ) -> None:
        self._wanted = wanted
        self._patience_s = patience_s
        self._say = say
        self._governor = Governor(most_cost_pct)
        self._has_warned = False
        self._open_tracer = open_tracer
        self._read_from = disks, topology, procfs, in_flight
        self._host_tier = HostTier()
        self._started = False
        self._making = threading.Lock()
        self._made: tuple[TracerSupervisor, ExactCollector] | None = None

    @property
    def collector(self) -> ExactCollector:
        """Reads the exact counters."""
        return self._make()[1]

    @property
    def _supervisor(self) -> TracerSupervisor:
        return self._make()[0]

    def _make(self) -> tuple[TracerSupervisor, ExactCollector]:
        """Import what they need at the first use, which is after the first screen is drawn; threads ask for them."""
        with self._making:
            if self._made is None:
                from collectors.exact.collector import ExactCollector  # noqa: PLC0415
                from collectors.exact.tracer_supervisor import TracerSupervisor  # noqa: PLC0415

                supervisor = TracerSupervisor(self._open_tracer)
                self._made = supervisor, ExactCollector(supervisor, *self._read_from)
            return self._made

    def close(self) -> None:
        """Detach, and stop the thread that attaches."""
        if self._made is not None:
            self.collector.close()

    @property
    def wanted(self) -> bool:
        """Whether programs may be attached in the kernel."""
        return self._wanted in {"auto", "exact"}

    @property
    def delivers(self) -> bool:
        """Whether the last reading had exact counters."""
        return self.collector.delivers

    @property
    def counts_busy(self) -> bool:
        """Whether the last reading had exact busy time."""
        return self.collector.counts_busy

    def before_first_sample(self, stop: StopFlag) -> None:
        """Attach now if the first sample may wait for it; ends early when `stop` is set.

        Raises:
            LunscopeError: the exact tier is required and unavailable.
        """
        if not self._patience_s or not self._start():
            return
        if self._wanted != "exact":
            self._await(stop, self._patience_s)
            return
        if not self._await(stop, SAID_AFTER_S) and not self._supervisor.refusal and not stop.is_set():
            self._say(f"attaching for exact time takes longer than {SAID_AFTER_S:g} s on this host; waiting")
            self._await(stop, LONGEST_ATTACH_S - SAID_AFTER_S)
        if self._supervisor.program is None and not stop.is_set():
            late = f"not attached in {LONGEST_ATTACH_S:g} s (busy host?): try again, or use --tier auto"
            raise LunscopeError(f"tier exact: {self._supervisor.refusal or late}")

    def _await(self, stop: StopFlag, patience_s: float) -> bool:
        """Wait for the end of the first attempt to attach; return whether there is a tracer."""
        end_s = time.monotonic() + patience_s
        while not self._supervisor.wait(min(_STOP_CHECK_S, max(0.0, end_s - time.monotonic()))):
            if self._supervisor.refusal or stop.is_set() or time.monotonic() >= end_s:
                return False
        return True

    def after_first_sample(self) -> None:
        """Attach in the background."""
        self._start()

    def govern(self, sample: Sample) -> None:
        """Stop exact time where it costs too much, and begin again when it would not; required, it only says so."""
        if self._made is None:
            return
        verdict = self._governor.judge(sample, is_stopped=self._supervisor.rests)
        if verdict is CostRuling.BEGIN_AGAIN:
            self._supervisor.resume()
        elif verdict is CostRuling.STOP and self._wanted != "exact":
            self._supervisor.rest(f"it was stopped, as {self._governor.reason}")
        elif verdict is CostRuling.STOP and not self._has_warned:
            self._has_warned = True
            self._supervisor.say(f"exact time goes on, as --tier exact asks for it, but {self._governor.reason}")

    def with_tier(self, topology: Topology, otherwise: Tier) -> Topology:
        """Return the topology with the current tier; `otherwise` is the tier without exact counters."""
        if self.delivers:
            return self._host_tier.apply(topology, Tier.EXACT, "")
        return self._host_tier.apply(topology, otherwise, self._supervisor.refusal)

    def _start(self) -> bool:
        """Start attaching, once; return whether this call started it."""
        if self._started or not self.wanted:
            return False
        self._started = True
        self._supervisor.start()
        return True


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
