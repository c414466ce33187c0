"""Several loads at once without a screen, ended cleanly by a signal."""

from __future__ import annotations

import time

from collectors.model import Step
from collectors.reports.run_devices import RunSamples
from engine.job.group import LoadGroup
from engine.job.spec import Permissions
from engine.replacing import replace
from engine.results.group_result import GroupResult, group_result
from engine.results.result import nothing_measured
from engine.running.control import LoadState, LoadStatus
from engine.running.group_control import GroupControl
from tui.headless.driven_run import DrivenLoads, ReportProgress
from tui.headless.host_samples import HostSamples
from tui.headless.monitor import Monitor
from tui.headless.one_run import exit_code, load_figures
from tui.headless.signals import EndingSignals

_POLL_S = 0.05
_REPORT_S = 1.0


class HeadlessGroup(DrivenLoads):
    """Watches the host while it runs the loads of a group."""

    def __init__(
        self,
        control: GroupControl,
        monitor: Monitor,
        signals: EndingSignals,
        report: ReportProgress,
        samples: RunSamples,
    ) -> None:
        super().__init__(control, signals, report)
        self._control = control
        self._monitor = monitor
        self._samples = HostSamples(monitor, samples)

    def drive(self, group: LoadGroup, permissions: Permissions) -> GroupResult:
        """Prepare and run all loads until each is over or a signal comes.

        Raises:
            LunscopeError: a load cannot be prepared or started; everything is cleaned up.
        """
        self._run(lambda: self._prepare(group, permissions))
        found = dict(self._control.results())
        outstanding = {name: control.outstanding for name, control in self._control.loads}
        return group_result(
            [
                (name, found.get(name) or replace(nothing_measured(job), outstanding=outstanding.get(name, ())))
                for name, job in zip(group.names, group.jobs, strict=True)
            ]
        )

    def _prepare(self, group: LoadGroup, permissions: Permissions) -> None:
        self._do_unless_stopped(self._samples.await_counters, "lunscope-sample")
        self._do_unless_stopped(lambda: self._control.arm(group, permissions), "lunscope-arm")
        self._do_unless_stopped(self._samples.begin, "lunscope-sample")
        self._do_unless_stopped(self._control.start, "lunscope-start")

    def _end_samples(self) -> None:
        self._samples.end()

    def _follow(self) -> None:
        reported_s = time.monotonic()
        while not self._control.wait(0) and self._signals.wait(_POLL_S) is None:
            self._name_waits()
            if time.monotonic() - reported_s >= _REPORT_S:
                reported_s += _REPORT_S
                self._report(_progress_line(self._control, self._monitor.step))


def _progress_line(control: GroupControl, step: Step | None) -> str:
    """Sum of all loads in one line: IOPS, mean latency, and how many still run."""
    states = [each.status.state for _, each in control.loads]
    status, running = control.status, states.count(LoadState.RUNNING)
    return f"{status.elapsed_s:5.0f} s{load_figures(step)}  {running} of {len(states)} loads{_troubles(status)}"


def _troubles(status: LoadStatus) -> str:
    errors = f"  {status.errors:,} errors" if status.errors else ""
    damaged = f"  {status.damaged:,} damaged" if status.damaged else ""
    return errors + damaged + (f"  {status.skipped:,} arrivals skipped" if status.skipped else "")


def group_exit_code(group: GroupResult, control: GroupControl, signals: EndingSignals) -> int:
    """Exit code of the worst of the loads, as `exit_code`."""
    states = {name: each.status.state for name, each in control.loads}
    return max(exit_code(load.result, states.get(load.name, LoadState.IDLE), signals) for load in group.loads)
