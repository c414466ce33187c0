"""Loads from their preparation to their end, without a screen: what holds whatever is done while they run."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from collectors.reports.run_devices import RunSamples
from engine.background_call import BackgroundCall
from engine.errors import StoppedError
from engine.job.spec import JobSpec, Permissions
from engine.replacing import replace
from engine.results.result import RunResult, nothing_measured
from engine.running.control import LoadControl, LoadState
from tui.headless.monitor import Monitor
from tui.headless.signals import EndingSignals
from tui.headless.wait_lines import WaitLines
from tui.process.standard_streams import say, show_progress

if TYPE_CHECKING:
    from engine.running.load import Loads

_POLL_S = 0.05
_SAMPLE_S = 1.0
"""How long a sample may hold up its start or end."""


class HostSamples:
    """Begins and ends the samples of a run with one of their own."""

    def __init__(self, monitor: Monitor, samples: RunSamples) -> None:
        self._monitor = monitor
        self._samples = samples

    def await_counters(self) -> None:
        """Wait for the first sample before the targets are opened, so that the load begins right after their checks."""
        if self._monitor.step is None:
            self._monitor.wait_for_next(self._monitor.first_sample_s)

    def begin(self) -> None:
        """Begin; takes the first sample."""
        self._samples.begin(time.monotonic_ns())
        self._monitor.sample_now(_SAMPLE_S)

    def end(self) -> None:
        """Take the last sample, before what was written is read back."""
        self._monitor.sample_now(_SAMPLE_S)
        self._samples.end()


class DrivenLoads(ABC):
    """Runs loads from preparation to end, in the main thread, which alone receives signals."""

    REPORT_S: ClassVar[float] = 1.0
    """How often its progress is reported."""

    def __init__(self, driven: Loads, signals: EndingSignals, samples: HostSamples | None = None) -> None:
        self._driven = driven
        self._signals = signals
        self._samples = samples
        self._waits = WaitLines(self._say)

    def _run(self, prepare: Callable[[], None]) -> None:
        """Prepare and run until it is over or a signal comes; everything is cleaned up then."""
        try:
            prepare()
            self._follow()
            self._end_samples()
        except StoppedError:
            pass
        finally:
            self._stop()
            self._waits.show(self._driven.outstanding)
            show_progress("")

    def _follow(self) -> None:
        """Return when the load is over or is to end."""
        self._follow_until(lambda: self._driven.wait(0))

    def _follow_until(self, is_over: Callable[[], bool]) -> None:
        """Name what is waited for and report progress until it is over or a signal comes."""
        reported_s = time.monotonic()
        while not is_over() and self._signals.wait(self._pause_s()) is None:
            self._act()
            self._name_waits()
            if time.monotonic() - reported_s >= self.REPORT_S:
                reported_s += self.REPORT_S
                show_progress(self._progress())

    def _pause_s(self) -> float:
        """How long to wait for signals only."""
        return _POLL_S

    def _act(self) -> None:  # noqa: B027 (most do nothing)
        """Do what is due between two waits."""

    @abstractmethod
    def _progress(self) -> str:
        """Say in one line how far it is."""

    def _begin(self, arm: Callable[[], None], start: Callable[[], None]) -> None:
        """Prepare and start, in the order in which samples need it."""
        samples = self._samples
        if samples is not None:
            self._do_unless_stopped(samples.await_counters, "lunscope-sample")
        self._do_unless_stopped(arm, "lunscope-arm")
        if samples is not None:
            self._do_unless_stopped(samples.begin, "lunscope-sample")
        self._do_unless_stopped(start, "lunscope-start")

    def _end_samples(self) -> None:
        """Take the last sample before what was written is read back."""
        if self._samples is not None:
            self._samples.end()

    def _do_unless_stopped(self, operation: Callable[[], None], name: str) -> None:
        """Run a call that may hang until it is done or a signal cancels it.

        Raises:
            StoppedError: a signal came.
        """
        if self._signals.wait(0) is not None:
            raise StoppedError("stopped before the load began")
        under_way = BackgroundCall(operation, name)
        while not under_way.done.wait(_POLL_S):
            self._name_waits()
            if self._signals.wait(0) is not None:
                self._stop()
                gave_up = self._driven.status.state is LoadState.FAILED
                if not under_way.done.wait(_POLL_S) and gave_up:
                    raise StoppedError("given up before the load began")
            progress = self._driven.status.progress
            if progress:
                show_progress(f"preparing: {100 * progress:.0f} %")
        under_way.result()

    def _stop(self) -> None:
        """End the load; a second signal gives up outstanding I/Os."""
        stopping = BackgroundCall(lambda: self._driven.stop(verify=self._signals.wait(0) is None), "lunscope-stop")
        while not stopping.done.wait(_POLL_S):
            self._name_waits()
            if self._signals.count > 1:
                self._driven.abandon()
        stopping.result()

    def _name_waits(self) -> None:
        self._waits.show(self._driven.status.outstanding)

    def _say(self, line: str) -> None:
        show_progress("")
        say(line)


class DrivenRun(DrivenLoads):
    """Runs one job."""

    def __init__(self, control: LoadControl, signals: EndingSignals, samples: HostSamples | None = None) -> None:
        super().__init__(control, signals, samples)
        self._control = control

    def drive(self, job: JobSpec, permissions: Permissions) -> RunResult:
        """Prepare and run until it is over or a signal comes.

        Raises:
            LunscopeError: the job cannot be prepared or started, or a turn is refused; everything is cleaned up.
        """
        before = self._control.result()
        self._run(lambda: self._prepare(job, permissions))
        result = self._control.result()
        if result is None or result is before:
            return replace(nothing_measured(job), outstanding=self._control.outstanding)
        return result

    @abstractmethod
    def _prepare(self, job: JobSpec, permissions: Permissions) -> None:
        """Arm the job and start it."""
