"""The job of the curve that is measured: a load begins anew where the next curve has another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from engine.errors import StoppedError, UsageError
from engine.job.knobs import Knobs
from engine.job.spec import JobSpec
from engine.study.load import EndedError, Load
from engine.sweep.plan import Curve, SweepPlan


@runtime_checkable
class LoadAnew(Protocol):
    """A load that can begin anew with another job."""

    def begin_anew(self, job: JobSpec, knobs: Knobs, is_ended: Callable[[], bool]) -> None:
        """End what runs and start another job with knobs, under the permissions of before; blocks."""


class CurveJobs:
    """Knows which job runs; without settings that vary it does nothing."""

    def __init__(self, plan: SweepPlan, load: Load, is_ended: Callable[[], bool]) -> None:
        """Take a load that runs the first curve."""
        self._plan, self._load, self._is_ended = plan, load, is_ended
        self._now: JobSpec | None = plan.job_at(plan.curves[0])

    def set(self, curve: Curve, knobs: Knobs) -> None:
        """Have the job of a curve run; blocks while the load begins anew.

        Raises:
            EndedError: the measurement was asked to end meanwhile.
            LunscopeError: it cannot run; the load has ended then.
        """
        job = self._plan.job_at(curve)
        if job == self._now:
            return
        if not isinstance(self._load, LoadAnew):
            raise UsageError(f"--vary: {curve.name}: this load cannot begin anew")
        self._now = None
        try:
            self._load.begin_anew(self._plan.armed_at(curve), knobs, self._is_ended)
        except StoppedError:
            raise EndedError from None
        self._now = job
