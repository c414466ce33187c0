"""The preset isolation: its plan as typed, measured without a screen; its victim here, its aggressor in a process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from engine.errors import LunscopeError, UsageError
from engine.isolation.aggressor_group import LimitHierarchy, find_hierarchy
from engine.isolation.plan import IsolationPlan, plan_isolation
from engine.isolation.runner import IsolationRunner
from engine.isolation.study import IsolationPoint, IsolationStudy, study_document, study_lines
from engine.job.spec import JobSpec, Permissions
from engine.strict_json import dump_json
from engine.study.trial_file import TrialFile
from engine.text import safe_text
from tui.headless.leaving import go_on_in_child
from tui.headless.measuring import Bench, MeasuredRun, measure_loads
from tui.headless.preset import PresetAsked
from tui.headless.watched_loads import exit_code
from tui.options.watching import Watching


class IsolationLimits(Struct, frozen=True):
    """Options of this preset only."""

    caps: tuple[str, ...]
    within: float | None


class IsolationOrder(Struct, frozen=True):
    """What to measure, on which host, and who asks."""

    plan: IsolationPlan
    hierarchy: LimitHierarchy
    permissions: Permissions
    as_json: bool = False
    kept: TrialFile[IsolationPoint] | None = None
    """The file of its points, open."""


class IsolationAsked(Struct, frozen=True):
    """What was typed about the preset."""

    preset: PresetAsked
    limits: IsolationLimits
    on_screen: Callable[[IsolationOrder, Watching], int] | None
    """Measures on the screens; None: without."""

    @property
    def unused(self) -> str:
        """Name an option that was given and has no effect here; empty if none was."""
        preset = self.preset
        given = {
            "--slo": preset.slo,
            "--toggle": preset.toggle,
            "--precondition": preset.precondition,
        }
        return next((name for name, value in given.items() if value), "")


def run_isolation(job: JobSpec, asked: IsolationAsked, permissions: Permissions, watching: Watching) -> int:
    """Check the victim and the aggressor, measure both and print table and answer; returns the exit code.

    Raises:
        LunscopeError: it cannot run here.
    """
    if asked.unused:
        raise UsageError(f"{asked.unused}: --preset isolation has no use for it: leave it out")
    preset, limits = asked.preset, asked.limits
    plan = plan_isolation(
        job,
        vary=preset.vary,
        caps=limits.caps,
        seconds=preset.knobs.get("runtime"),
        within=limits.within,
        has_depth=preset.knobs.get("qd") is not None,
    )
    hierarchy = find_hierarchy(watching.sysfs)
    for line in (*preset.warnings, plan.words):
        _say(line)
    go_on_in_child()
    with nullcontext() if preset.trials is None else TrialFile(preset.trials, plan) as file:
        if file is not None and file.done:
            _say(f"goes on after {len(file.done)} point{'s' if file.done[1:] else ''} in {preset.trials}")
        order = IsolationOrder(plan, hierarchy, permissions, preset.as_json, file)
        return _run(order, watching) if asked.on_screen is None else asked.on_screen(order, watching)


class HeadlessIsolation(MeasuredRun[IsolationPoint, IsolationStudy]):
    """Takes a plan from the preparation of the victim to the last point."""

    def __init__(self, order: IsolationOrder, bench: Bench, sysfs: Path) -> None:
        super().__init__(bench, order.plan.victim.knobs, order.kept)
        # On a terminal the line of progress names the point.
        say = (lambda _text: None) if sys.stderr.isatty() else _say
        plan, done = order.plan, () if order.kept is None else tuple(order.kept.done)
        control = bench.control
        self.runner: IsolationRunner = IsolationRunner(
            plan, control, order.hierarchy, sysfs, keep=self._keep, done=done, note=control.note_load, say=say
        )


def _run(order: IsolationOrder, watching: Watching) -> int:
    study: IsolationStudy | None = None
    failure: LunscopeError | None = None

    def measure(bench: Bench) -> int:
        nonlocal study, failure
        isolation = HeadlessIsolation(order, bench, watching.sysfs)
        try:
            load = isolation.drive(order.plan.victim, order.permissions)
        finally:
            study, failure = isolation.result, isolation.runner.failure
        return exit_code(load, bench.control.status.state, bench.signals)

    def show(bench: Bench) -> int:
        if failure is not None:
            _say(str(failure))
        if study is not None and study.points:
            _print(study, bench.sampling.watch.host(), as_json=order.as_json)
        code = 0 if failure is None else failure.exit_code
        return code or int(study is not None and not study.is_complete)

    return measure_loads(watching, measure, show)


def _say(line: str) -> None:
    click.echo(f"lunscope: {safe_text(line)}", err=True)


def _print(study: IsolationStudy, host: Mapping[str, Any] | None, *, as_json: bool) -> None:
    if as_json:
        click.echo(dump_json({**study_document(study), "host": host}))
        return
    for line in study_lines(study):
        click.echo(safe_text(line))
