"""The preset isolation: its plan as typed, measured without a screen; its victim here, its aggressor in a process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import click
from msgspec import Struct

from engine.errors import LunscopeError, UsageError
from engine.isolation.aggressor_group import LimitHierarchy, find_hierarchy
from engine.isolation.plan import IsolationPlan, plan_isolation
from engine.isolation.runner import IsolationRunner
from engine.isolation.study import IsolationPoint, IsolationStudy, study_document, study_lines
from engine.job.spec import JobSpec, Permissions
from engine.running.control import LoadControl
from engine.strict_json import dump_json
from engine.study.trial_file import TrialFile
from engine.text import safe_text
from tui.headless.leaving import go_on_in_child, leave
from tui.headless.measuring import MeasuredRun, Sampling
from tui.headless.monitor import READING_S
from tui.headless.preset import PresetAsked
from tui.headless.signals import EndingSignals
from tui.headless.sweep import LAST_SAMPLE_S
from tui.headless.watched_loads import exit_code
from tui.options.watching import Watching, open_source, recording_exit


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

    def __init__(
        self,
        order: IsolationOrder,
        control: LoadControl,
        sampling: Sampling,
        signals: EndingSignals,
        watching: Watching,
    ) -> None:
        super().__init__(control, sampling, signals, order.plan.victim.knobs, order.kept)
        # On a terminal the line of progress names the point.
        say = (lambda _text: None) if sys.stderr.isatty() else _say
        plan, done = order.plan, () if order.kept is None else tuple(order.kept.done)
        note = control.note_load
        self.runner: IsolationRunner = IsolationRunner(
            plan, control, order.hierarchy, watching.sysfs, keep=self._keep, done=done, note=note, say=say
        )


def _run(order: IsolationOrder, watching: Watching) -> int:
    control = LoadControl()
    with EndingSignals() as signals:
        source, recording = open_source(watching, control)
        sampling = Sampling.of(source, control, watching)
        monitor = sampling.monitor
        isolation = HeadlessIsolation(order, control, sampling, signals, watching)
        code = 0
        try:
            monitor.start()
            load = isolation.drive(order.plan.victim, order.permissions)
            if recording is not None:
                monitor.wait_for_next(min(watching.interval_s, LAST_SAMPLE_S) + READING_S)
            code = exit_code(load, control.status.state, signals)
        except LunscopeError as error:
            _say(str(error))
            code = error.exit_code
        finally:
            monitor.close()
        failure = isolation.runner.failure
        if failure is not None:
            _say(str(failure))
            code = code or failure.exit_code
        study = isolation.result
        if study is not None:
            if study.points:
                _print(study, sampling.watch.host(), as_json=order.as_json)
            code = code or int(not study.is_complete)
        if control.outstanding:
            leave(code or 1)
        return recording_exit(recording, code)


def _say(line: str) -> None:
    click.echo(f"lunscope: {safe_text(line)}", err=True)


def _print(study: IsolationStudy, host: Mapping[str, Any] | None, *, as_json: bool) -> None:
    if as_json:
        click.echo(dump_json({**study_document(study), "host": host}))
        return
    for line in study_lines(study):
        click.echo(safe_text(line))
