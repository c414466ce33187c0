"""The preset isolation without a screen: its victim in this process, its aggressor in another one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from engine.errors import LunscopeError, StoppedError, UsageError
from engine.hostfs.sysblock import look_up
from engine.isolation.aggressor_group import find_hierarchy
from engine.isolation.caps import parse_cap
from engine.isolation.factor import figure_for
from engine.isolation.runner import IsolationPlan, IsolationRunner
from engine.isolation.study import AggressorLoad, IsolationStudy, study_document, study_lines
from engine.isolation.victim import VictimMeter
from engine.job.choices import Arrival
from engine.job.sizes import format_blocks
from engine.job.spec import JobSpec, Permissions
from engine.job.validate import validate
from engine.rate_search.plan import open_depth
from engine.running.control import LoadControl
from engine.sweep.axes import SweepAxis, parse_axis
from engine.text import safe_text
from tui.headless.leaving import go_on_in_child, leave
from tui.headless.preset import PresetAsked
from tui.headless.signals import EndingSignals
from tui.options.watching import Watching

POINT_S = 10
WITHIN = 1.5
_DEPTHS = "qd=1,2,4,8,16,32"
_AXES = ("qd", "bs")
_SPARE_S = 180
"""The aggressor ends by itself so long after its point, should nothing else end it."""


@dataclass(frozen=True, slots=True)
class IsolationLimits:
    """Options of this preset only."""

    caps: tuple[str, ...]
    within: float | None


@dataclass(frozen=True, slots=True)
class IsolationAsked:
    """What was typed about the preset."""

    preset: PresetAsked
    limits: IsolationLimits
    has_screen: bool

    def unused(self, watching: Watching) -> str:
        """Name an option that was given and has no effect here; empty if none was."""
        preset = self.preset
        given = {
            "--slo": preset.slo,
            "--toggle": preset.toggle,
            "--trials": preset.trials,
            "--record": watching.record,
            "--precondition": preset.precondition,
        }
        return next((name for name, value in given.items() if value), "")


def run_isolation(job: JobSpec, asked: IsolationAsked, permissions: Permissions, watching: Watching) -> int:
    """Check the victim and the aggressor, measure both and print table and answer; returns the exit code.

    Raises:
        LunscopeError: it cannot run here.
    """
    _refuse(job, asked, watching)
    sysfs, within = watching.sysfs, asked.limits.within or WITHIN
    victim, loads = _victim(job, asked), _loads(job, asked.preset.vary)
    caps = tuple(map(parse_cap, asked.limits.caps)) or None
    hierarchy = find_hierarchy(sysfs)
    seconds = _seconds(asked.preset.knobs)
    for warning in asked.preset.warnings:
        _say(warning)
    go_on_in_child()
    control = LoadControl()
    code, ended = 0, ""
    with EndingSignals() as signals:

        def is_stopped(timeout_s: float) -> bool:
            return signals.wait(timeout_s) is not None

        study = IsolationStudy((), victim.knobs.rate_iops or 0.0, figure_for(victim.knobs.rate_iops or 0.0),
                               within, ())  # fmt: skip
        runner: IsolationRunner | None = None
        try:
            control.arm(victim, permissions)
            study = replace(study, targets=control.status.targets)
            plan = IsolationPlan(loads, caps, seconds, _AggressorJob(job, seconds + _SPARE_S), _disks(control, sysfs))
            _say(f"isolation: {plan.points} points of {seconds} s, about {_minutes(plan)}")
            control.start()
            runner = IsolationRunner(plan, hierarchy, VictimMeter(control, is_stopped), study, is_stopped, _say)
            runner.run()
        except StoppedError:
            ended, code = "stopped", 128 + (signals.wait(0) or 0)
        except LunscopeError as error:
            ended, code = str(error), error.exit_code
            _say(ended)
        finally:
            control.stop()
        if runner is not None and runner.study.points:
            _print(replace(runner.study, ended=ended), as_json=asked.preset.as_json)
        if control.outstanding:
            leave(code or 1)
    return code


def _refuse(job: JobSpec, asked: IsolationAsked, watching: Watching) -> None:
    if asked.has_screen:
        raise UsageError("--preset isolation: it has no screen: add --headless, or --json")
    unused = asked.unused(watching)
    if unused:
        raise UsageError(f"{unused}: --preset isolation has no use for it: leave it out")
    if len(job.targets) != 1 or job.targets[0].path is None:
        raise UsageError("--preset isolation: name the one device or file that both loads read: --target")
    if job.knobs.read_pct != 100:
        raise UsageError("--preset isolation: both loads only read: leave --rw write and --read-pct out")
    if job.knobs.rate_iops is None:
        raise UsageError("--preset isolation: give the rate of the victim, as --rate 500")
    if asked.limits.within is not None and not asked.limits.within > 1:
        raise UsageError("--within: how many times its response time alone the victim may have: above 1, as 1.5")


def _victim(job: JobSpec, asked: IsolationAsked) -> JobSpec:
    """Make the open loop: response times count from the time an I/O was due."""
    knobs = job.knobs if asked.preset.knobs.get("qd") is not None else replace(job.knobs, queue_depth=open_depth(job))
    arrival = Arrival.POISSON if job.arrival is Arrival.CLOSED else job.arrival
    victim = replace(job, knobs=knobs, arrival=arrival, runtime_s=None, io_bytes=None, loops=None, ramp_s=0.0)
    validate(victim)
    return victim


def _loads(job: JobSpec, vary: Sequence[str]) -> tuple[AggressorLoad, ...]:
    axes = {axis.knob.key: axis for axis in map(parse_axis, vary)}
    for key in axes:
        if key not in _AXES:
            raise UsageError(f"--vary {key}: the aggressor of --preset isolation varies {' and '.join(_AXES)}")
    depths = axes.get("qd", parse_axis(_DEPTHS))
    blocks = _values(axes["bs"]) if "bs" in axes else (format_blocks(job.knobs.blocks),)
    return tuple(AggressorLoad(int(depth), block) for block in blocks for depth in _values(depths))


def _values(axis: SweepAxis) -> tuple[str, ...]:
    return tuple(axis.shown(value) for value in axis.values)


def _seconds(knobs: Mapping[str, Any]) -> int:
    runtime = knobs.get("runtime")
    seconds = POINT_S if runtime is None else int(runtime)
    if seconds < 3:
        raise UsageError("--runtime: the time of each point of --preset isolation is 3s or longer")
    return seconds


@dataclass(frozen=True, slots=True)
class _AggressorJob:
    """Makes a closed loop of the job, which ends by itself should nothing else end it."""

    job: JobSpec
    runtime_s: float

    def __call__(self, load: AggressorLoad) -> JobSpec:
        knobs = replace(self.job.knobs, queue_depth=load.queue_depth, rate_iops=None)
        if load.block != format_blocks(knobs.blocks):
            sizes = parse_axis(f"bs={load.block}")
            knobs = sizes.knob.turned(knobs, sizes.values[0])
        target = replace(self.job.targets[0], path=str(Path(self.job.targets[0].path or "").absolute()))
        return replace(
            self.job,
            targets=(target,),
            knobs=knobs,
            arrival=Arrival.CLOSED,
            runtime_s=self.runtime_s,
            io_bytes=None,
            loops=None,
            ramp_s=0.0,
        )


def _disks(control: LoadControl, sysfs: Path) -> tuple[str, ...]:
    """Name the whole disks that the target is or is stored on: limits are of whole disks.

    Raises:
        UsageError: there are none, as on NFS.
    """
    numbers = dict.fromkeys(number for target in control.status.devices for number in target)
    found = (look_up(sysfs, number) for number in numbers)
    disks = tuple(dict.fromkeys(device.disk_folder.name for device in found if device is not None))
    if not disks:
        raise UsageError("--preset isolation: the target is on no block device: limits are of block devices")
    return disks


def _minutes(plan: IsolationPlan) -> str:
    # A process that starts, and the second that it settles.
    total_s = plan.points * (plan.seconds + 3)
    return f"{total_s / 60:.0f} min" if total_s >= 90 else f"{total_s} s"


def _say(line: str) -> None:
    click.echo(f"lunscope: {safe_text(line)}", err=True)


def _print(study: IsolationStudy, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(study_document(study), allow_nan=False))
        return
    for line in study_lines(study):
        click.echo(safe_text(line))
