"""`lunscope fleet sweep`: one load over different numbers of hosts, and how it scales."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import click

from collectors.fleet.fleet_source import FleetSource
from collectors.fleet.fleet_sweep_load import FleetSweepLoad, armed_jobs
from collectors.fleet.host_jobs import HostJob
from collectors.fleet.hosts_text import missing_hosts
from collectors.sources.recorder import RecordingSource
from engine.errors import UsageError
from engine.events import Event, EventKind
from engine.job.spec import Permissions
from engine.sweep.axes import SweepAxis, parse_axis
from engine.sweep.document import sweep_document
from engine.sweep.hosts_axis import hosts_knob, scaling_document, scaling_lines, scaling_of
from engine.sweep.limit import Limit
from engine.sweep.plan import SweepPlan, make_plan, require_write_permission
from engine.sweep.presets.preset import doubled
from engine.sweep.runner import SweepResult, SweepRunner
from engine.sweep.text import sweep_lines
from engine.sweep.trial import Trial
from engine.sweep.tuned_axis import TuneKnob
from engine.text import safe_text
from tui.headless.fleet_run import await_hosts
from tui.headless.monitor import Monitor
from tui.headless.signals import EndingSignals


@dataclass(frozen=True, slots=True)
class FleetSweepWork:
    """What to measure, and how."""

    plan: SweepPlan
    jobs: Mapping[str, HostJob]
    window_s: float
    destroy_data: bool
    partial: bool
    """Whether to go on without hosts that do not answer at the beginning."""


def plan_fleet_sweep(
    jobs: Mapping[str, HostJob], vary: Sequence[str], slo: Sequence[str], *, destroy_data: bool
) -> SweepPlan:
    """Combine the axes over the jobs of all hosts; without an axis of hosts their number is doubled up to all.

    Raises:
        UsageError: an axis is of no knob, or a combination cannot be measured.
        RefusedError: a point writes to what may not be written.
    """
    knob = hosts_knob(len(jobs))
    axes = [parse_axis(text, {"hosts": knob}) for text in vary]
    if any(isinstance(axis.knob, TuneKnob) for axis in axes):
        raise UsageError("--vary tune.NAME: tunables are of one host: lunscope sweep there varies them")
    if not any(axis.knob is knob for axis in axes):
        axes.insert(0, SweepAxis(knob, tuple(map(int, doubled(len(jobs)).split(",")))))
    limits = tuple(map(Limit.parse, slo))
    plans = []
    for each in armed_jobs(jobs).values():
        plan = make_plan(each.job, tuple(axes), limits)
        require_write_permission(plan, Permissions(frozenset(each.allow_write), destroy_data=destroy_data))
        plans.append(plan)
    return plans[0]


def sweep_fleet(fleet: FleetSource, recording: RecordingSource | None, work: FleetSweepWork, *, as_json: bool) -> int:
    """Measure a plan until it is done, a host has gone or a signal came, and print it; returns the exit code.

    Raises:
        LunscopeError: a host is missing at the beginning.
    """
    monitor = Monitor(fleet if recording is None else recording, lambda _step: None)
    with EndingSignals() as signals:
        try:
            monitor.start()
            await_hosts(fleet, signals, partial=work.partial)
            gone = missing_hosts(fleet.controller.hosts)
            jobs = {name: job for name, job in work.jobs.items() if name not in gone}
            plan = _with_fewer_hosts(work.plan, len(jobs))
            result, spreads_ns = _measure(fleet, recording, signals, replace(work, plan=plan, jobs=jobs))
            gone = missing_hosts(fleet.controller.hosts)
            monitor.wait_for_next(2.0)
        finally:
            monitor.close()
        _print(result, tuple(jobs), gone, spreads_ns, as_json=as_json)
        signal = signals.wait(0)
        return 128 + signal if signal is not None else int(bool(gone) or not result.is_complete)


def _with_fewer_hosts(plan: SweepPlan, count: int) -> SweepPlan:
    """Leave out the numbers of hosts that are not there."""
    axes = tuple(
        replace(axis, values=tuple(dict.fromkeys(min(value, count) for value in axis.values)))
        if axis.knob.id == "hosts"
        else axis
        for axis in plan.axes
    )
    return make_plan(plan.job, axes, plan.limits, plan.rule)


def _measure(
    fleet: FleetSource, recording: RecordingSource | None, signals: EndingSignals, work: FleetSweepWork
) -> tuple[SweepResult, list[int]]:
    plan = work.plan
    load = FleetSweepLoad(
        fleet.controller,
        armed_jobs(work.jobs, plan.armed.knobs.queue_depth),
        lambda timeout_s: signals.wait(timeout_s) is not None,
        work.window_s,
        destroy_data=work.destroy_data,
    )

    def keep(curve: int, trial: Trial) -> None:
        values = plan.curves[curve].name
        at = values if plan.load is None else f"{values} {plan.load.knob.key}={trial.load:g}".strip()
        click.echo(f"lunscope: {at}: {trial.iops:,.0f} IOPS", err=True)

    def note(text: str, data: Mapping[str, str | float | None]) -> None:
        if recording is not None:
            recording.add_event(Event.now(EventKind.LOAD, text, **data))

    try:
        return SweepRunner(plan, load, keep, note=note).run(), load.spreads_ns
    finally:
        load.stop()


def _print(
    result: SweepResult, hosts: tuple[str, ...], missing: Mapping[str, str], spreads_ns: list[int], *, as_json: bool
) -> None:
    scalings = scaling_of(result)
    if as_json:
        document = {
            **sweep_document(result, hosts),
            "schema": "lunscope.fleet-sweep/1",
            "hosts": list(hosts),
            "partial": bool(missing),
            "missing": [{"host": name, "reason": why} for name, why in missing.items()],
            "start_spread_ms": max(spreads_ns) / 1e6 if spreads_ns else None,
            "scaling": scaling_document(scalings),
        }
        click.echo(json.dumps(document, allow_nan=False))
        return
    for line in (*sweep_lines(result), *scaling_lines(scalings)):
        click.echo(safe_text(line))
    if spreads_ns:
        click.echo(f"started within {max(spreads_ns) / 1e6:.2f} ms of each other")
    for name, why in missing.items():
        click.echo(safe_text(f"partial: {name} is missing: {why}"))
