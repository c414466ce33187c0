"""Loads without a screen, one or several at once, with the host watched beside them: ended cleanly by a signal."""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from collectors.model import Step
from collectors.rates import derive
from collectors.reports.run_devices import RunSamples
from engine.errors import LunscopeError
from engine.job.scenario import Turn, unseen_turns_text
from engine.job.spec import JobSpec, Permissions
from engine.replacing import replace
from engine.results.group_result import GroupResult, group_result
from engine.results.result import RunResult, nothing_measured
from engine.running.control import LoadControl, LoadState, LoadStatus
from tui.headless.driven_run import DrivenLoads, DrivenRun, HostSamples
from tui.headless.monitor import Monitor
from tui.headless.signals import EndingSignals

if TYPE_CHECKING:
    from engine.job.group import LoadGroup
    from engine.running.group_control import GroupControl

_OPENING_S = 0.005
_ENDED_S = 0.5
"""How long the end of a load that refused a turn may take to be known."""


class HeadlessRun(DrivenRun):
    """Watches the host while it runs one job, with knob turns at their times."""

    def __init__(
        self,
        control: LoadControl,
        monitor: Monitor,
        signals: EndingSignals,
        *,
        turns: Sequence[Turn] = (),
        samples: RunSamples | None = None,
    ) -> None:
        super().__init__(control, signals, None if samples is None else HostSamples(monitor, samples))
        self._monitor = monitor
        self._turns = deque(turns)
        self._late_s = 0.0
        """What the turns so far have taken, which is added to the times of those that follow and to the end."""

    def _prepare(self, job: JobSpec, permissions: Permissions) -> None:
        self._begin(lambda: self._control.arm(job, permissions), self._start)

    def _start(self) -> None:
        if self._turns:
            # The last turn sets the end: none of them may come too late for it.
            self._control.end_after(None)
        self._control.start()

    def _progress(self) -> str:
        return progress_line(self._control.status, self._monitor.step)

    def _pause_s(self) -> float:
        """How long to wait for signals only: until the next turn at most."""
        if not self._turns:
            return super()._pause_s()
        return min(max(self._turns[0].at_s + self._late_s - self._control.status.elapsed_s, 0.0), super()._pause_s())

    def _act(self) -> None:
        """Turn what is due; each step is as long as the file says, from when its knobs are in force."""
        while self._turns and self._turns[0].at_s + self._late_s <= self._control.status.elapsed_s:
            turn, knobs = self._turns[0], self._control.status.knobs
            assert knobs is not None
            try:
                self._do_unless_stopped(functools.partial(self._control.turn, turn.turned(knobs)), "lunscope-turn")
            except LunscopeError:
                if self._control.wait(_ENDED_S):
                    return
                raise
            self._await_opening()
            if self._control.wait(0):
                return
            self._turns.popleft()
            status = self._control.status
            self._late_s = status.elapsed_s - turn.at_s
            if not self._turns and status.job is not None and status.job.runtime_s is not None:
                self._control.end_after(status.job.runtime_s + self._late_s)

    def _await_opening(self) -> None:
        while self._control.opens and not self._control.wait(_OPENING_S) and self._signals.wait(0) is None:
            self._name_waits()

    def _end_samples(self) -> None:
        super()._end_samples()
        if self._turns and self._signals.wait(0) is None:
            self._say(unseen_turns_text(self._turns, self._control.status.elapsed_s))


class HeadlessGroup(DrivenLoads):
    """Watches the host while it runs the loads of a group."""

    def __init__(
        self,
        control: GroupControl,
        monitor: Monitor,
        signals: EndingSignals,
        samples: RunSamples,
    ) -> None:
        super().__init__(control, signals, HostSamples(monitor, samples))
        self._control = control
        self._monitor = monitor

    def drive(self, group: LoadGroup, permissions: Permissions) -> GroupResult:
        """Prepare and run all loads until each is over or a signal comes.

        Raises:
            LunscopeError: a load cannot be prepared or started; everything is cleaned up.
        """
        self._run(lambda: self._prepare(group, permissions))
        found, controls = dict(self._control.results()), dict(self._control.loads)
        return group_result(
            [
                (name, found.get(name) or _unmeasured(job, controls.get(name)))
                for name, job in zip(group.names, group.jobs, strict=True)
            ]
        )

    def _prepare(self, group: LoadGroup, permissions: Permissions) -> None:
        self._begin(lambda: self._control.arm(group, permissions), self._control.start)

    def _progress(self) -> str:
        states = [each.status.state for _, each in self._control.loads]
        figures, running = load_figures(self._monitor.step), states.count(LoadState.RUNNING)
        return _line(self._control.status, f"{figures}  {running} of {len(states)} loads")


def _unmeasured(job: JobSpec, control: LoadControl | None) -> RunResult:
    """Say of a load of a group that never ran what is outstanding, and why it failed if it did."""
    result = nothing_measured(job)
    if control is None:
        return result
    status = control.status
    failure = status.message if status.state is LoadState.FAILED else ""
    return replace(result, outstanding=control.outstanding, failure=failure)


def progress_line(status: LoadStatus, step: Step | None) -> str:
    """Progress of the load in one line: IOPS, mean latency and queue depth of the last sample."""
    if status.state is LoadState.STOPPING and status.progress is not None:
        return f"reading back what was written: {100 * status.progress:.0f} %"
    figures = load_figures(step)
    depth = "" if status.knobs is None else f"  QD {status.knobs.queue_depth}"
    return _line(status, figures + depth)


def _line(status: LoadStatus, figures: str) -> str:
    troubles = ((status.errors, "errors"), (status.damaged, "damaged"), (status.skipped, "arrivals skipped"))
    named = "".join(f"  {count:,} {what}" for count, what in troubles if count)
    tail = f"  {status.tail}" if status.tail else ""
    return f"{status.elapsed_s:5.0f} s{figures}{named}{tail}"


def load_figures(step: Step | None) -> str:
    """IOPS and mean latency of all I/Os of the last sample; empty where they are not known."""
    if step is None:
        return ""
    total = derive(step.previous, step.current).tables.get("load_total")
    if total is None or not len(total.rows):
        return ""
    iops, await_ms = total.value("iops", 0), total.value("await_ms", 0)
    if math.isnan(iops):
        return ""
    latency = "" if math.isnan(await_ms) else f"  lat {await_ms:.3f} ms"
    return f"  {iops:,.0f} IOPS{latency}"


def exit_code(result: RunResult, state: LoadState, signals: EndingSignals) -> int:
    """Exit code: 0, 1 (the load or its I/Os failed or stalled, or data are damaged), or 128 + the signal that ended it.

    The signal takes precedence, as on the screens and in a shell; outstanding I/Os are in the result.
    """
    signal = signals.wait(0)
    if signal is not None:
        return 128 + signal
    failed = state is LoadState.FAILED or result.failed_ios or result.is_damaged or result.ended_in_stall
    return int(bool(failed or result.outstanding or result.missed_steady))


def group_exit_code(group: GroupResult, control: GroupControl, signals: EndingSignals) -> int:
    """Exit code of the worst of the loads, as `exit_code`."""
    states = {name: each.status.state for name, each in control.loads}
    return max(exit_code(load.result, states.get(load.name, LoadState.IDLE), signals) for load in group.loads)
