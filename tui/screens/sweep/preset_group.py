"""A preset as measurements behind the screen, and what the screen says before it is chosen."""

from __future__ import annotations

from msgspec import Struct

from collectors.advice.measured import answer_sections
from collectors.reports.documents.sizing import sizing_section
from collectors.reports.formats.text import section_lines
from engine.errors import LunscopeError
from engine.job.spec import JobSpec, Permissions
from engine.replacing import replace
from engine.sizing.outcome import SizedSweep
from engine.sweep.plan import rough_time
from engine.sweep.presets.plans import PresetPlan, plan_preset
from engine.sweep.presets.preset import HostSize, Preset
from engine.sweep.presets.registry import PRESETS
from tui.options.job import with_scratch_targets
from tui.sweep.series import SessionGroup


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
    needs += ["writes"] if plan.least_read_pct < 100 else []
    rule, points = plan.parts[0][1].rule, sum(part.trials for _, part in plan.parts)
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


def study_lines(group: SessionGroup, targets: tuple[str, ...]) -> list[str]:
    """Write what all parts say together, of what was measured up to now; empty before the first measurement."""
    if group.order.whole is None or not any(curve.trials for each in group.results for curve in each.curves):
        return []
    whole = group.order.whole(group.results, targets)
    is_sized = isinstance(whole, SizedSweep)
    return list(section_lines([sizing_section(whole.need, whole.sizings)] if is_sized else answer_sections([whole])))


def measurable(job: JobSpec) -> JobSpec:
    """Make the job of a load one that is measured: it ends with the measurement, and its rate is not limited."""
    knobs = replace(job.knobs, rate_iops=None)
    return replace(job, knobs=knobs, runtime_s=None, io_bytes=None, loops=None, ramp_s=0.0, verify=JobSpec().verify)
