"""The load of a fleet as a sweep drives it: knobs turned, epochs parted and counters read on all hosts at once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from collectors.fleet.controller import FleetController
from collectors.fleet.fleet_load import FleetLoad, Interrupted
from collectors.fleet.fleet_result import measured_split
from collectors.fleet.frames import Frame
from collectors.fleet.host_jobs import HostJob
from engine.errors import LunscopeError
from engine.job.spec import Knobs
from engine.replacing import replace
from engine.results.measured import Split, combine_splits
from engine.results.result import EpochResult, FsyncResult, TargetResult
from engine.running.counter_reader import ERRORS, FAILING, IOS, LATENCIES, OUTSTANDING_NS, SERVICES
from engine.running.status import LoadState, LoadStatus
from engine.sweep.hosts_knob import FleetKnobs

_WINDOW_S = 0.05
"""The least time between two readings of all hosts: a frame to and from each of them."""
_END_S = 60.0
_NO_FLUSHES = FsyncResult(0, 0, 0, 0)


class FleetSweepLoad:
    """Implements engine.running.load.Load; one caller. The first hosts drive it, as many as the knobs say."""

    def __init__(
        self,
        controller: FleetController,
        jobs: Mapping[str, HostJob],
        interrupted: Interrupted,
        window_s: float,
        *,
        destroy_data: bool,
    ) -> None:
        """Drive `jobs`, whose knobs make room for the deepest queue of the sweep."""
        self._controller, self._jobs = controller, jobs
        self._interrupted, self._window_s, self._destroy_data = interrupted, window_s, destroy_data
        self._load: FleetLoad | None = None
        self._hosts = 0
        self._knobs = Knobs()
        self._message = ""
        self.spreads_ns: list[int] = []
        """Time between the first and the last host, for each start."""

    @property
    def status(self) -> LoadStatus:
        """Where the load stands; its targets are the hosts."""
        load = self._load
        state = LoadState.IDLE if load is None else LoadState.RUNNING
        return LoadStatus(state, targets=() if load is None else load.present, message=self._message)

    def turn(self, knobs: Knobs) -> None:
        """Turn the knobs of all hosts at one time; another number of hosts is another start.

        Raises:
            LunscopeError: a host refuses or has gone, or the clocks are not known well enough.
        """
        hosts = knobs.hosts if isinstance(knobs, FleetKnobs) else len(self._jobs)
        self._knobs = knobs
        if self._load is None or hosts != self._hosts:
            self.stop()
            self._start(hosts, _plain(knobs))
        else:
            self._load.set_knobs(lambda _: _plain(knobs))

    def _start(self, hosts: int, knobs: Knobs) -> None:
        jobs = dict(list(self._jobs.items())[:hosts])
        load = FleetLoad(self._controller, jobs, self._interrupted, self._window_s)
        try:
            load.prepare(destroy_data=self._destroy_data)
            load.set_knobs(lambda _: knobs)
            load.start()
            if load.missing:
                name, why = next(iter(load.missing.items()))
                raise LunscopeError(f"{name}: {why}")
        except LunscopeError:
            load.stop()
            raise
        self._load, self._hosts = load, hosts
        if load.start_spread_ns is not None:
            self.spreads_ns.append(load.start_spread_ns)

    def part_epoch(self) -> None:
        """Open another epoch on all hosts at one time."""
        if self._load is not None:
            self._load.part_epoch()

    def peek(self) -> NDArray[np.uint64] | None:
        """Counters of all hosts now, a row each, in the columns of the raw table load that a sweep reads."""
        answers = self._ask("peek")
        if answers is None:
            return None
        rows = np.zeros((len(answers), OUTSTANDING_NS + 1), np.uint64)
        for row, answer in zip(rows, answers.values(), strict=True):
            row[IOS[0]], row[ERRORS] = _count(answer, "ios"), _count(answer, "errors")
            row[LATENCIES[0]], row[SERVICES[0]] = _count(answer, "latency_ns"), _count(answer, "service_ns")
            row[OUTSTANDING_NS], row[FAILING] = _count(answer, "outstanding_ns"), answer.get("failing") is True
        return rows

    def last_epoch(self) -> EpochResult | None:
        """Everything measured since the last turn or parting, of all hosts: histograms are added up."""
        answers = self._ask("epoch")
        if answers is None:
            return None
        splits = {name: measured_split(answer) for name, answer in answers.items()}
        known = {name: split for name, split in splits.items() if split is not None}
        if len(known) < len(splits):
            self._message = "a host sent a damaged epoch"
            return None
        return self._epoch(known, [_duration_s(answer) for answer in answers.values()])

    def wait(self, timeout_s: float) -> bool:
        """Wait for the load to end, on any host; whether it has."""
        if self._interrupted(max(timeout_s, _WINDOW_S) if timeout_s else 0):
            self._message = "stopped"
            return True
        return self._has_ended()

    def stop(self) -> None:
        """End it on all hosts and wait for that."""
        load, self._load = self._load, None
        if load is not None:
            load.stop()
            load.await_end(_END_S)

    def _has_ended(self) -> bool:
        load = self._load
        if load is None:
            return bool(self._message)
        load.is_over()  # notes hosts that have gone
        if load.missing:
            name, why = next(iter(load.missing.items()))
            self._message = f"{name}: {why}"
            return True
        ended = next((name for name in load.present if self._controller.hosts[name].result is not None), None)
        if ended is not None:
            said = str(self._controller.hosts[ended].status.get("message") or "the load ended there")
            self._message = f"{ended}: {said}"
        return ended is not None

    def _ask(self, what: str) -> dict[str, Frame] | None:
        if self._load is None:
            return None
        hosts = self._load.present
        answers = self._load.ask_now(what)
        if self._load.missing:
            return None
        refused = next((name for name in hosts if answers[name].get("error")), None)
        if refused is not None:
            self._message = f"{refused}: {answers[refused]['error']}"
            return None
        return {name: answers[name] for name in hosts}

    def _epoch(self, splits: Mapping[str, Split], durations_s: list[float]) -> EpochResult:
        whole = combine_splits(list(splits.values()))
        targets = tuple(TargetResult(name, split) for name, split in splits.items())
        duration_s = _common_duration_s([split.total.ios for split in splits.values()], durations_s)
        return EpochResult(0, _plain(self._knobs), None, duration_s, 0, whole, targets, None, _NO_FLUSHES)


def _common_duration_s(ios: list[int], durations_s: list[float]) -> float:
    """Time in which all I/Os at the sum of the hosts' rates are done: each host is read a moment after the other."""
    if min(durations_s) <= 0:
        return 0.0
    rate = sum(count / duration_s for count, duration_s in zip(ios, durations_s, strict=True))
    return sum(ios) / rate if rate else min(durations_s)


def _plain(knobs: Knobs) -> Knobs:
    return knobs.of_a_host if isinstance(knobs, FleetKnobs) else knobs


def _count(answer: Frame, field: str) -> int:
    value = answer.get(field)
    return value if type(value) is int and 0 <= value < 1 << 63 else 0


def _duration_s(answer: Frame) -> float:
    value = answer.get("duration_s")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0.0


def armed_jobs(jobs: Mapping[str, HostJob], queue_depth: int | None = None) -> dict[str, HostJob]:
    """Leave out the end of each job, and make room for the deepest queue of a sweep."""
    made = {}
    for name, each in jobs.items():
        knobs = each.job.knobs if queue_depth is None else replace(each.job.knobs, queue_depth=queue_depth)
        job = replace(each.job, knobs=knobs, runtime_s=None, io_bytes=None, loops=None, ramp_s=0.0)
        made[name] = HostJob(job, each.allow_write)
    return made
