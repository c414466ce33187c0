"""A preset of sweeps without a screen: its parts one after the other, and the tables of its study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import click

from engine.errors import UsageError
from engine.isolation.study import NAME as ISOLATION
from engine.isolation.study import SOURCE, TITLE
from engine.job.spec import JobSpec, Permissions
from engine.study.order import StudyOrder
from engine.sweep.presets.files import PresetFiles
from engine.sweep.presets.order import preset_order
from engine.sweep.presets.plans import PresetAsked, plan_asked
from engine.sweep.presets.preset import HostSize
from engine.sweep.presets.registry import PRESETS, preset_named
from tui.headless.sweep import SweepOutput, begin
from tui.options.job import with_scratch_targets
from tui.process.standard_streams import say

LIST = "list"


def list_presets() -> int:
    """Print the names of all presets; returns the exit code."""
    lines = [(preset.name, preset.title, preset.source) for preset in PRESETS.values()]
    lines.append((ISOLATION, TITLE, SOURCE))
    width = max(len(name) for name, _, _ in lines)
    for name, title, source in lines:
        click.echo(f"{name:<{width}}  {title} ({source})")
    return 0


def run_preset(job: JobSpec, name: str, asked: PresetAsked, permissions: Permissions, output: SweepOutput) -> int:
    """Check a preset, say how long it takes, measure it and print its tables; returns the exit code.

    Raises:
        LunscopeError: it cannot run on these targets.
    """
    preset, toggle = preset_named(name), asked.toggle
    if asked.toggle_back is not None and not toggle:
        raise UsageError("--toggle-back undoes --toggle: give that as well")
    if preset.is_toggled and not toggle:
        raise UsageError(f"--preset {preset.name}: name the command that turns the cache on: --toggle COMMAND")
    if toggle is not None and not preset.is_toggled:
        raise UsageError(f"--toggle: --preset {preset.name} runs no command: leave it out")
    job = with_scratch_targets(job, preset.scratch_targets(HostSize.here()))
    plan = plan_asked(preset, job, asked, permissions)

    def ordered(stack: ExitStack) -> StudyOrder:
        files = stack.enter_context(PresetFiles(plan.plans, output.trials))
        for line in resumed_lines(files, asked.commands):
            say(line)
        return preset_order(plan, permissions, files, asked.commands)

    return begin(plan.plans[0].with_all_targets, (plan.words, *plan.remarks), permissions, output, ordered)


def resumed_lines(files: PresetFiles, commands: Sequence[str]) -> Iterator[str]:
    """Say from where a preset goes on."""
    if files.done:
        yield f"goes on after {files.done} measurements in {files.path(0)}"
    for part, (option, _) in enumerate(zip(("--toggle", "--toggle-back"), commands, strict=False), 1):
        if files.has_begun(part):
            yield f"{option} is not run again: {files.path(part)} was begun after it"
