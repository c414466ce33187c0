"""A preset as measurements behind the screen, and what the screen says before it is chosen."""

from __future__ import annotations

from msgspec import Struct

from engine.errors import LunscopeError
from engine.job.spec import JobSpec, Permissions
from engine.replacing import replace
from engine.sweep.axes import parse_axis
from engine.sweep.plan import rough_time
from engine.sweep.presets.files import PresetFiles
from engine.sweep.presets.outcome import PresetOutcome, outcome_lines
from engine.sweep.presets.plans import PresetPlan, plan_preset
from engine.sweep.presets.preset import HostSize, Preset
from engine.sweep.presets.registry import PRESETS
from tui.load.load_controller import LoadController
from tui.options.job import with_scratch_targets
from tui.sweep.series import SessionGroup, SessionStep
from tui.sweep.session import SweepSession


class PresetOffer(Struct, frozen=True):
    """A preset as it can be chosen."""

    preset: Preset
    needs: str
    """What it needs of the operator, or why it cannot run on these targets."""
    plan: PresetPlan | None
    """Plan with all writes allowed; None if it cannot run."""


def preset_offers(job: JobSpec) -> list[PresetOffer]:
    """Say of each preset what it needs on the targets of a job, and how long it takes."""
    return [_offer(preset, job) for preset in PRESETS.values()]


def _offer(preset: Preset, job: JobSpec) -> PresetOffer:
    try:
        plan = preset_plan(preset, job, None)
    except LunscopeError as error:
        return PresetOffer(preset, str(error).removeprefix(f"--preset {preset.name}: "), None)
    needs = [f"{len(plan.parts[0][1].job.targets)} targets" if len(plan.parts[0][1].job.targets) > 1 else "1 target"]
    needs += ["a command"] if preset.is_toggled else []
    needs += ["writes"] if least_read_pct(plan) < 100 else []
    rule, points = plan.parts[0][1].rule, sum(part.points for _, part in plan.parts)
    needs.append(rough_time(points * (rule.least_warm_up_s + rule.most_s)))
    return PresetOffer(preset, ", ".join(needs), plan)


def preset_plan(preset: Preset, job: JobSpec, permissions: Permissions | None) -> PresetPlan:
    """Plan a preset on the targets of a job; without permissions as if all writes were allowed.

    Raises:
        LunscopeError: it cannot run on these targets.
    """
    host = HostSize.here()
    job = with_scratch_targets(job, preset.scratch_targets(host))
    if permissions is None:
        permissions = Permissions(frozenset(node for target in job.targets for node in target.nodes))
    return plan_preset(preset, job, (), permissions, host=host)


def least_read_pct(plan: PresetPlan) -> float:
    """Return the lowest share of reads of all points: below 100 it writes."""
    return min(curve.knobs.read_pct for _, part in plan.parts for curve in part.curves)


def writes_only(preset: Preset, job: JobSpec) -> bool:
    """Whether no point of a preset only reads, so that nothing is left without permission to write."""
    host = HostSize.here()
    axes = [parse_axis(text) for part in preset.parts(job, host) for text in part.axes]
    return not any(axis.knob.id == "read_pct" and 100.0 in axis.values for axis in axes)


def preset_group(plan: PresetPlan, controller: LoadController, command: str, files: PresetFiles) -> SessionGroup:
    """Make the parts of a preset; those that were measured before are complete already.

    Raises:
        LunscopeError: a file cannot be used.
    """
    count = len(plan.parts)

    def part(index: int) -> SweepSession:
        name = plan.parts[index][0].name
        words = f"{plan.preset.name}: part {index + 1} of {count}, {name}" if count > 1 else plan.preset.name
        return SweepSession(plan.parts[index][1], controller, files.file(index), part=words)

    def step(index: int) -> SessionStep:
        is_last = index == count - 1
        return SessionStep(lambda: part(index), command if is_last and not files.has_begun(index) else "")

    return SessionGroup([part(0)], [step(index) for index in range(1, count)], plan)


def study_lines(group: SessionGroup, targets: tuple[str, ...]) -> list[str]:
    """Write the tables of the study of what was measured up to now; empty before the first measurement."""
    sweeps = (session.result for session in group.sessions if isinstance(session, SweepSession))
    results = tuple(result for result in sweeps if result is not None)
    if group.preset is None or not any(curve.trials for result in results for curve in result.curves):
        return []
    return list(outcome_lines(PresetOutcome(group.preset, results, targets)))


def measurable(job: JobSpec) -> JobSpec:
    """Make the job of a load one that is measured: it ends with the measurement, and its rate is not limited."""
    knobs = replace(job.knobs, rate_iops=None)
    return replace(job, knobs=knobs, runtime_s=None, io_bytes=None, loops=None, ramp_s=0.0, verify=JobSpec().verify)
