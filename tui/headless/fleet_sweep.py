"""`lunscope fleet sweep`: one load over different numbers of hosts, or a published study, and how it scales."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click
from msgspec import Struct

from collectors.advice.measured import answer_sections
from collectors.fleet.fleet_drive import await_hosts
from collectors.fleet.fleet_load import Interrupted
from collectors.fleet.fleet_source import FleetSource
from collectors.fleet.fleet_sweep_load import FleetSweepLoad, armed_jobs
from collectors.fleet.host_jobs import HostJob
from collectors.fleet.hosts_text import missing_hosts
from collectors.model import Source
from collectors.reports.documents.content import Bullets, Section
from collectors.reports.documents.hosts import scaling_section
from collectors.reports.documents.sweep import sweep_sections
from collectors.reports.documents.sweep_file import swept_of
from engine.errors import UsageError
from engine.events import Event, EventKind
from engine.job.spec import Permissions
from engine.replacing import replace
from engine.strict_json import dump_json
from engine.study.load import NotWatched
from engine.study.order import Study
from engine.study.trial_file import TrialFile
from engine.sweep.axes import SweepAxis, parse_axis
from engine.sweep.document import Document, sweep_document
from engine.sweep.hosts_axis import scaling_document, scaling_of
from engine.sweep.hosts_knob import hosts_knob
from engine.sweep.limit import Limit
from engine.sweep.outer_knob import OuterKnob
from engine.sweep.plan import SweepPlan, make_plan, require_write_permission
from engine.sweep.points import Point
from engine.sweep.presets.files import PresetFiles
from engine.sweep.presets.outcome import PresetOutcome, outcome_document
from engine.sweep.presets.plans import PresetAsked, PresetPlan, plan_asked
from engine.sweep.presets.preset import Preset, doubled
from engine.sweep.runner import SweepResult, SweepRunner
from engine.sweep.trial import Trial
from tui.headless.monitor import Monitor
from tui.headless.shown import print_sections
from tui.headless.signals import EndingSignals
from tui.process.standard_streams import say


class FleetSweepWork(Struct, frozen=True):
    """What to measure, and how."""

    plans: tuple[SweepPlan, ...]
    """One after the other, as the parts of a preset."""
    jobs: Mapping[str, HostJob]
    """Targets and permissions of each host; all else is the plan's."""
    window_s: float
    destroy_data: bool
    partial: bool
    """Whether to go on without hosts that do not answer at the beginning."""
    trials: Path | None = None
    """File in which each measurement is kept; further plans have a file each beside it."""

    @property
    def writes(self) -> bool:
        """Whether a point writes to a target that has a name."""
        named = any(target.nodes for each in self.jobs.values() for target in each.job.targets)
        return named and any(plan.least_read_pct < 100 for plan in self.plans)


class FleetMeasured(Struct, frozen=True):
    """What was measured of the plans that began, in their order."""

    results: tuple[SweepResult, ...]
    hosts: tuple[str, ...]
    missing: Mapping[str, str]
    spreads_ns: Sequence[int]
    """Time between the first and the last host, for each start."""

    @property
    def document(self) -> Document:
        """Write what the results say of the hosts, as JSON."""
        return {
            "hosts": list(self.hosts),
            "partial": bool(self.missing),
            "missing": [{"host": name, "reason": why} for name, why in self.missing.items()],
            "start_spread_ms": max(self.spreads_ns) / 1e6 if self.spreads_ns else None,
        }

    @property
    def section(self) -> Section:
        """Say the same in words."""
        lines = [f"partial: {name} is missing: {why}" for name, why in self.missing.items()]
        if self.spreads_ns:
            lines.insert(0, f"started within {max(self.spreads_ns) / 1e6:.2f} ms of each other")
        return Section("Hosts", (Bullets(tuple(lines)),) if lines else ())


ShowMeasured = Callable[[FleetMeasured, FleetSweepWork], None]


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
    outer = next((axis.knob.key for axis in axes if isinstance(axis.knob, OuterKnob)), None)
    if outer is not None:
        raise UsageError(f"--vary {outer}: it is of one host: lunscope sweep there varies it")
    if not any(axis.knob is knob for axis in axes):
        axes.insert(0, SweepAxis(knob, tuple(map(int, doubled(len(jobs)).split(",")))))
    limits = tuple(map(Limit.parse, slo))
    plans = []
    for each in armed_jobs(jobs).values():
        plan = make_plan(each.job, tuple(axes), limits)
        require_write_permission(plan, Permissions(frozenset(each.allow_write), destroy_data=destroy_data))
        plans.append(plan)
    return plans[0]


def sweep_fleet(fleet: FleetSource, source: Source, work: FleetSweepWork, show: ShowMeasured) -> int:
    """Measure plans until they are done, a host has gone or a signal came, and show them; returns the exit code.

    Raises:
        LunscopeError: a host is missing at the beginning, or the file of trials is of something else.
    """
    monitor = Monitor(source, lambda _step: None)
    with EndingSignals() as signals:
        measuring = FleetMeasuring(fleet, work, lambda seconds: signals.wait(seconds) is not None, say)
        try:
            monitor.start()
            measuring.run()
            monitor.wait_for_next(2.0)
        finally:
            monitor.close()
        code = measuring.show(show)
        signal = signals.wait(0)
        return 128 + signal if signal is not None else code


def _with_fewer_hosts(plan: SweepPlan, count: int) -> SweepPlan:
    """Leave out the numbers of hosts that are not there."""
    axes = tuple(
        replace(axis, values=tuple(dict.fromkeys(min(value, count) for value in axis.values)))
        if axis.knob.id == "hosts"
        else axis
        for axis in plan.axes
    )
    if axes == plan.axes:
        return plan
    made = make_plan(plan.job, axes, plan.limits, plan.rule)
    next_load = plan.curves[0].search.next_load
    curves = tuple(replace(curve, search=replace(curve.search, next_load=next_load)) for curve in made.curves)
    return replace(made, curves=curves, preset=plan.preset, part=plan.part)


class FleetMeasuring:
    """Measures the plans of a work, one after the other, in the thread that calls `run`."""

    def __init__(
        self, fleet: FleetSource, work: FleetSweepWork, interrupted: Interrupted, say: Callable[[str], None]
    ) -> None:
        self._fleet, self._work, self._interrupted, self._say = fleet, work, interrupted, say
        self._results: list[SweepResult] = []
        self._missing: dict[str, str] = {}
        self._spreads_ns: list[int] = []

    def run(self) -> None:
        """Wait for the hosts, and measure until one plan is not complete.

        Raises:
            LunscopeError: a host is missing at the beginning, or the file of trials is of something else.
        """
        hosts, work = self._fleet.controller.hosts, self._work
        await_hosts(
            self._fleet.controller,
            self._interrupted,
            lambda line: self._say(f"waiting: {line}"),
            partial=work.partial,
        )
        gone = missing_hosts(hosts)
        jobs = {name: job for name, job in work.jobs.items() if name not in gone}
        plans = tuple(_with_fewer_hosts(plan, len(jobs)) for plan in work.plans)
        self._work = replace(work, jobs=jobs, plans=plans)
        with PresetFiles(plans, work.trials, tuple(jobs)) as files:
            for index, plan in enumerate(plans):
                self._results.append(self._one(plan, files.file(index)))
                if not self._results[-1].is_complete:
                    break
        self._missing = missing_hosts(hosts)

    def show(self, show: ShowMeasured) -> int:
        """Show what was measured, once `run` has returned; returns the exit code."""
        results = tuple(self._results)
        show(FleetMeasured(results, tuple(self._work.jobs), self._missing, self._spreads_ns), self._work)
        is_complete = len(results) == len(self._work.plans) and all(result.is_complete for result in results)
        return int(bool(self._missing) or not is_complete)

    def _one(self, plan: SweepPlan, file: TrialFile[Trial] | None) -> SweepResult:
        jobs = armed_jobs(jobs_of(plan, self._work.jobs), plan.armed.knobs.queue_depth)
        window_s, destroy_data = self._work.window_s, self._work.destroy_data
        load = FleetSweepLoad(self._fleet.controller, jobs, self._interrupted, window_s, destroy_data=destroy_data)
        if file is not None and file.done:
            self._say(f"goes on after {len(file.done)} measurements in {file.path}")

        def keep(curve: int, trial: Trial) -> None:
            self._say(f"{plan.point_name(Point(curve, round(trial.load)))}: {trial.iops:,.0f} IOPS")
            if file is not None:
                file.append(curve, trial)

        runner = Study(plan, SweepRunner, file).over(load, keep, self._note, NotWatched())
        try:
            result: SweepResult = runner.result_if_done() or runner.run()
            return result
        finally:
            load.stop()
            self._spreads_ns += load.spreads_ns

    def _note(self, text: str, data: Mapping[str, str | float | None]) -> None:
        self._fleet.add_event(Event.now(EventKind.LOAD, text, **data))


def jobs_of(plan: SweepPlan, jobs: Mapping[str, HostJob]) -> dict[str, HostJob]:
    """Make the job of each host from that of a plan and its own targets."""
    return {
        name: HostJob(replace(plan.job, targets=each.job.targets), each.allow_write).turned(lambda knobs: knobs)
        for name, each in jobs.items()
    }


def show_scaling(measured: FleetMeasured, _work: FleetSweepWork, *, as_json: bool) -> None:
    """Print a sweep, and what it says about more hosts."""
    (result,) = measured.results
    scalings = scaling_of(result)
    if as_json:
        document = {
            **sweep_document(result, measured.hosts),
            "schema": "lunscope.fleet-sweep/1",
            **measured.document,
            "scaling": scaling_document(scalings),
        }
        click.echo(dump_json(document))
        return
    sections = (*sweep_sections(swept_of(result)), *map(scaling_section, scalings), measured.section)
    print_sections(sections)


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
