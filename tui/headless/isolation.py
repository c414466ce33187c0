"""The preset isolation: its plan as typed, measured; its victim here, its aggressor in a process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from msgspec import Struct

from engine.errors import UsageError
from engine.isolation.aggressor_group import find_hierarchy
from engine.isolation.plan import plan_isolation
from engine.isolation.runner import IsolationRunner
from engine.job.spec import JobSpec, Permissions
from engine.study.order import Study, StudyOrder
from engine.sweep.presets.plans import PresetAsked
from tui.headless.sweep import SweepOutput, begin, opened
from tui.process.standard_streams import say


class IsolationLimits(Struct, frozen=True):
    """Options of this preset only."""

    caps: tuple[str, ...]
    within: float | None


def run_isolation(
    job: JobSpec,
    limits: IsolationLimits,
    asked: PresetAsked,
    permissions: Permissions,
    output: SweepOutput,
) -> int:
    """Check the victim and the aggressor, measure both and print table and answer; returns the exit code.

    Raises:
        LunscopeError: it cannot run here.
    """
    given = {
        "--slo": asked.slo,
        "--toggle": asked.toggle,
        "--toggle-back": asked.toggle_back,
        "--precondition": output.precondition,
    }
    unused = next((name for name, value in given.items() if value), "")
    if unused:
        raise UsageError(f"{unused}: --preset isolation has no use for it: leave it out")
    plan = plan_isolation(
        job,
        vary=asked.vary,
        caps=limits.caps,
        seconds=asked.knobs.get("runtime"),
        within=limits.within,
        has_depth=asked.knobs.get("qd") is not None,
    )
    sysfs = output.watching.sysfs
    # On a terminal the line of progress names the point.
    say_point: Callable[[str], None] = _say_nothing if output.on_screen or sys.stderr.isatty() else say
    runner = partial(IsolationRunner, hierarchy=find_hierarchy(sysfs), sysfs=sysfs, say=say_point)

    def ordered(files: ExitStack) -> StudyOrder:
        return StudyOrder(Study(plan, runner, opened(files, output.trials, plan, "point")), permissions)

    return begin(plan.armed, (plan.words,), permissions, output, ordered)


def _say_nothing(_text: str) -> None:
    """Leave it to the line of progress."""
