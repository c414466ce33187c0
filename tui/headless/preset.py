"""A preset of sweeps without a screen: its parts one after the other, and the tables of its study."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from engine.errors import StoppedError, UsageError
from engine.isolation.study import NAME as ISOLATION
from engine.isolation.study import SOURCE, TITLE
from engine.job.knobs import KNOBS_BY_KEY
from engine.job.spec import JobSpec, Permissions
from engine.strict_json import dump_json
from engine.sweep.axes import SweepAxis, parse_axis
from engine.sweep.presets.command import run_command
from engine.sweep.presets.files import PresetFiles
from engine.sweep.presets.outcome import PresetOutcome, outcome_document, outcome_lines
from engine.sweep.presets.plans import POINT_S, PresetPlan, plan_preset
from engine.sweep.presets.preset import HostSize
from engine.sweep.presets.registry import PRESETS, preset_named
from engine.sweep.runner import SweepResult
from engine.text import safe_text
from tui.headless.leaving import go_on_in_child
from tui.headless.measuring import Bench, measure_loads
from tui.headless.precondition import precondition_code, preconditioning
from tui.headless.signals import EndingSignals
from tui.headless.sweep import HeadlessSweep, SweepOrder
from tui.headless.watched_loads import exit_code
from tui.options.job import with_scratch_targets
from tui.options.watching import Watching

LIST = "list"


class PresetAsked(Struct, frozen=True):
    """What was typed about a preset."""

    name: str
    vary: tuple[str, ...]
    knobs: Mapping[str, Any]
    """Options of the load by key; those of axes replace them."""
    slo: tuple[str, ...]
    trials: Path | None
    as_json: bool
    toggle: str | None
    """A shell command between the parts."""
    warnings: tuple[str, ...]
    """Warnings of the job file."""
    precondition: bool = False
    """Whether targets are written to before anything is measured."""
    on_screen: Callable[[PresetPlan, PresetFiles, Permissions, Watching], int] | None = None
    """Measures on the screens; None: without."""


def list_presets() -> int:
    """Print the names of all presets; returns the exit code."""
    lines = [(preset.name, preset.title, preset.source) for preset in PRESETS.values()]
    lines.append((ISOLATION, TITLE, SOURCE))
    width = max(len(name) for name, _, _ in lines)
    for name, title, source in lines:
        click.echo(f"{name:<{width}}  {title} ({source})")
    return 0


def run_preset(job: JobSpec, asked: PresetAsked, permissions: Permissions, watching: Watching) -> int:
    """Check a preset, say how long it takes, measure it and print its tables; returns the exit code.

    Raises:
        LunscopeError: it cannot run on these targets.
    """
    plan = _plan(job, asked, permissions)
    click.echo(f"lunscope: {safe_text(plan.words)}", err=True)
    for remark in (*asked.warnings, *plan.remarks):
        click.echo(f"lunscope: {safe_text(remark)}", err=True)
    first = preconditioning(plan.parts[0][1].armed, permissions, wanted=asked.precondition)
    go_on_in_child()
    code = precondition_code(first)
    if code:
        return code
    with PresetFiles(plan, asked.trials) as files:
        for line in resumed_lines(plan, files, asked.toggle):
            click.echo(f"lunscope: {safe_text(line)}", err=True)
        if asked.on_screen is not None:
            return asked.on_screen(plan, files, permissions, watching)
        return _run(plan, permissions, watching, asked, files)


def resumed_lines(plan: PresetPlan, files: PresetFiles, toggle: str | None) -> Iterator[str]:
    """Say from where a preset goes on."""
    if files.done:
        yield f"goes on after {files.done} measurements in {files.path(0)}"
    if toggle and files.has_begun(len(plan.parts) - 1):
        yield f"--toggle is not run again: {files.path(len(plan.parts) - 1)} was begun after it"


def _plan(job: JobSpec, asked: PresetAsked, permissions: Permissions) -> PresetPlan:
    preset, host = preset_named(asked.name), HostSize.here()
    _refuse_what_has_no_effect(asked)
    if preset.is_toggled and not asked.toggle:
        raise UsageError(f"--preset {preset.name}: name the command that turns the cache on: --toggle COMMAND")
    if asked.toggle is not None and not preset.is_toggled:
        raise UsageError(f"--toggle: --preset {preset.name} runs no command: leave it out")
    point_s = POINT_S if asked.knobs.get("runtime") is None else float(asked.knobs["runtime"])
    if point_s <= 0:
        raise UsageError("--runtime: the time of each point of a preset is longer than 0s")
    job = with_scratch_targets(job, preset.scratch_targets(host))
    keys = {parse_axis(text).knob.key for part in preset.parts(job, host) for text in part.axes}
    changes = [parse_axis(text) for text in asked.vary]
    for key in sorted(keys):
        if asked.knobs.get(key) is not None:
            changes.append(SweepAxis(KNOBS_BY_KEY[key], (asked.knobs[key],)))
    return plan_preset(preset, job, changes, permissions, host=host, point_s=point_s)


def _refuse_what_has_no_effect(asked: PresetAsked) -> None:
    if asked.slo:
        raise UsageError("--slo: a preset measures the points of its study, whatever their latency: leave it out")
    if asked.knobs.get("rw") is not None:
        raise UsageError("--rw: a preset has the order of its study: leave it out, or give --read-pct")


def _run(plan: PresetPlan, permissions: Permissions, watching: Watching, asked: PresetAsked, files: PresetFiles) -> int:
    results = list[SweepResult]()

    def measure(bench: Bench) -> int:
        code, control, signals = 0, bench.control, bench.signals
        for index, (_, part) in enumerate(plan.parts):
            if asked.toggle and index == len(plan.parts) - 1 and not files.has_begun(index):
                try:
                    _toggle(asked.toggle, signals)
                except StoppedError:
                    return 128 + (signals.wait(0) or 0)
            sweep = HeadlessSweep(SweepOrder(part, permissions, asked.as_json, files.file(index)), bench)
            done = sweep.result_if_done()
            if done is not None:
                results.append(done)
                continue
            try:
                load = sweep.drive(part.armed, permissions)
            finally:
                results.extend([] if sweep.result is None else [sweep.result])
            code = code or exit_code(load, control.status.state, signals)
            if signals.wait(0) is not None or control.outstanding:
                break
        return code

    def show(bench: Bench) -> int:
        if not results:
            return 0
        outcome = PresetOutcome(plan, tuple(results), bench.control.status.targets)
        _print(outcome, bench.sampling.watch.host(), as_json=asked.as_json)
        return int(not outcome.is_complete)

    return measure_loads(watching, measure, show)


def _toggle(command: str, signals: EndingSignals) -> None:
    click.echo(f"lunscope: runs {safe_text(command)}", err=True)
    run_command(command, lambda seconds: signals.wait(seconds) is not None, sys.stderr.fileno())


def _print(outcome: PresetOutcome, host: Mapping[str, object] | None, *, as_json: bool) -> None:
    if as_json:
        click.echo(dump_json({**outcome_document(outcome), "host": host}))
        return
    for line in outcome_lines(outcome):
        click.echo(safe_text(line))
