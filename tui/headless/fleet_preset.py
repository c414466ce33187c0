"""`lunscope fleet sweep --preset`: a published study over the hosts of a fleet, in its tables."""

from __future__ import annotations

from collections.abc import Mapping

import click

from collectors.advice.measured import answer_sections
from collectors.fleet.host_jobs import HostJob
from engine.job.spec import Permissions
from engine.replacing import replace
from engine.strict_json import dump_json
from engine.sweep.hosts_knob import hosts_knob
from engine.sweep.plan import require_write_permission
from engine.sweep.presets.outcome import PresetOutcome, outcome_document
from engine.sweep.presets.plans import PresetAsked, PresetPlan, plan_asked
from engine.sweep.presets.preset import Preset
from tui.headless.fleet_sweep import FleetMeasured, FleetSweepWork, jobs_of
from tui.headless.shown import print_sections


def plan_fleet_preset(
    preset: Preset, jobs: Mapping[str, HostJob], asked: PresetAsked, *, destroy_data: bool
) -> PresetPlan:
    """Scale the axes of a preset to the hosts and the fewest targets of any, and check every point on every host.

    Raises:
        UsageError: the preset has no such axis, or an option has no effect on it.
        RefusedError: a point writes to what may not be written.
    """
    least = min(jobs.values(), key=lambda each: len(each.job.targets))
    job = replace(least.job, runtime_s=None, io_bytes=None, loops=None, ramp_s=0.0)
    permissions = Permissions(frozenset(least.allow_write), destroy_data=destroy_data)
    plan = plan_asked(preset, job, asked, permissions, {"hosts": hosts_knob(len(jobs))})
    for _, part in plan.parts:
        for each in jobs_of(part, jobs).values():
            allowed = Permissions(frozenset(each.allow_write), destroy_data=destroy_data)
            require_write_permission(replace(part, job=each.job), allowed)
    return plan


def show_study(measured: FleetMeasured, work: FleetSweepWork, *, preset: PresetPlan, as_json: bool) -> None:
    """Print the tables of a study."""
    parts = tuple((part, plan) for (part, _), plan in zip(preset.parts, work.plans, strict=True))
    outcome = PresetOutcome(replace(preset, parts=parts), measured.results, measured.hosts)
    if as_json:
        document = {**outcome_document(outcome), "schema": "lunscope.fleet-preset/1", **measured.document}
        click.echo(dump_json(document))
        return
    print_sections((*answer_sections([outcome]), measured.section))
