"""A load without a screen: bounded, with a summary, and ended cleanly by a signal."""

from __future__ import annotations

import functools
import math
import time
from collections import deque
from collections.abc import Sequence

from collectors.model import Step
from collectors.rates import derive
from collectors.reports.run_devices import RunSamples
from engine.job.scenario import Turn
from engine.job.spec import JobSpec, Permissions
from engine.results.result import RunResult
from engine.running.control import LoadControl, LoadState, LoadStatus
from tui.headless.driven_run import DrivenRun, ReportProgress
from tui.headless.host_samples import HostSamples
from tui.headless.monitor import Monitor
from tui.headless.signals import EndingSignals

_POLL_S = 0.05
_REPORT_S = 1.0


class HeadlessRun(DrivenRun):
    """Watches the host while it runs one job, with knob turns at their times."""

    def __init__(
        self,
        control: LoadControl,
        monitor: Monitor,
        signals: EndingSignals,
        report: ReportProgress,
        *,
        turns: Sequence[Turn] = (),
        samples: RunSamples | None = None,
    ) -> None:
        super().__init__(control, signals, report)
        self._monitor = monitor
        self._turns = deque(turns)
        self._samples = HostSamples(monitor, samples)

    def _prepare(self, job: JobSpec, permissions: Permissions) -> None:
        self._do_unless_stopped(self._samples.await_counters, "lunscope-sample")
        self._do_unless_stopped(lambda: self._control.arm(job, permissions), "lunscope-arm")
        self._do_unless_stopped(self._samples.begin, "lunscope-sample")
        self._do_unless_stopped(self._control.start, "lunscope-start")

    def _end_samples(self) -> None:
        self._samples.end()

    def _follow(self) -> None:
        reported_s = time.monotonic()
        while not self._control.wait(0) and self._signals.wait(self._pause_s()) is None:
            self._turn_what_is_due()
            self._name_waits()
            if time.monotonic() - reported_s >= _REPORT_S:
                reported_s += _REPORT_S
                self._report(progress_line(self._control.status, self._monitor.step))

    def _pause_s(self) -> float:
        """How long to wait for signals only: until the next turn at most."""
        if not self._turns:
            return _POLL_S
        return min(max(self._turns[0].at_s - self._control.status.elapsed_s, 0.0), _POLL_S)

    def _turn_what_is_due(self) -> None:
        while self._turns and self._turns[0].at_s <= self._control.status.elapsed_s:
            knobs = self._control.status.knobs
            assert knobs is not None
            turn = functools.partial(self._control.turn, self._turns.popleft().turned(knobs))
            self._do_unless_stopped(turn, "lunscope-turn")


def progress_line(status: LoadStatus, step: Step | None) -> str:
    """Progress of the load in one line: IOPS, mean latency and queue depth of the last sample."""
    if status.state is LoadState.STOPPING and status.progress is not None:
        return f"reading back what was written: {100 * status.progress:.0f} %"
    figures = load_figures(step)
    depth = "" if status.knobs is None else f"  QD {status.knobs.queue_depth}"
    errors = f"  {status.errors:,} errors" if status.errors else ""
    skipped = f"  {status.skipped:,} arrivals skipped" if status.skipped else ""
    damaged = f"  {status.damaged:,} damaged" if status.damaged else ""
    tail = f"  {status.tail}" if status.tail else ""
    return f"{status.elapsed_s:5.0f} s{figures}{depth}{errors}{damaged}{skipped}{tail}"


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
