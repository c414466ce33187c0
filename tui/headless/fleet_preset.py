"""`lunscope fleet sweep --preset`: a published study over the hosts of a fleet, in its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
from msgspec import Struct

from collectors.fleet.host_jobs import HostJob
from engine.errors import UsageError
from engine.job.knobs import KNOBS_BY_KEY
from engine.job.spec import Permissions
from engine.replacing import replace
from engine.strict_json import dump_json
from engine.sweep.axes import SweepAxis, parse_axis
from engine.sweep.hosts_knob import hosts_knob
from engine.sweep.plan import require_write_permission
from engine.sweep.presets.outcome import PresetOutcome, outcome_document, outcome_lines
from engine.sweep.presets.plans import POINT_S, PresetPlan, plan_preset
from engine.sweep.presets.preset import HostSize, Preset
from engine.text import safe_text
from tui.headless.fleet_sweep import FleetMeasured, FleetSweepWork, jobs_of


class FleetPresetAsked(Struct, frozen=True):
    """What was typed about a preset."""

    vary: Sequence[str]
    slo: Sequence[str]
    knobs: Mapping[str, Any]
    """Options of the load by key; those of axes replace them."""


def plan_fleet_preset(
    preset: Preset, jobs: Mapping[str, HostJob], asked: FleetPresetAsked, *, destroy_data: bool
) -> PresetPlan:
    """Scale the axes of a preset to the hosts and the fewest targets of any, and check every point on every host.

    Raises:
        UsageError: the preset has no such axis, or an option has no effect on it.
        RefusedError: a point writes to what may not be written.
    """
    if asked.slo:
        raise UsageError("--slo: a preset measures the points of its study, whatever their latency: leave it out")
    if asked.knobs.get("rw") is not None:
        raise UsageError("--rw: a preset has the order of its study: leave it out, or give --read-pct")
    point_s = POINT_S if asked.knobs.get("runtime") is None else float(asked.knobs["runtime"])
    if point_s <= 0:
        raise UsageError("--runtime: the time of each point of a preset is longer than 0s")
    least, host = min(jobs.values(), key=lambda each: len(each.job.targets)), HostSize.here()
    others = {"hosts": hosts_knob(len(jobs))}
    changes = [parse_axis(text, others) for text in asked.vary]
    job = replace(least.job, runtime_s=None, io_bytes=None, loops=None, ramp_s=0.0)
    keys = {parse_axis(text, others).knob.key for part in preset.parts(job, host) for text in part.axes}
    changes += [
        SweepAxis(KNOBS_BY_KEY[key], (asked.knobs[key],)) for key in sorted(keys) if asked.knobs.get(key) is not None
    ]
    permissions = Permissions(frozenset(least.allow_write), destroy_data=destroy_data)
    plan = plan_preset(preset, job, changes, permissions, host=host, point_s=point_s, others=others)
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
    for line in (*outcome_lines(outcome), *measured.lines):
        click.echo(safe_text(line))
