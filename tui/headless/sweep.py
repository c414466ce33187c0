"""A sweep without a screen: prepared, measured point by point, summed up, and ended cleanly by a signal."""

from __future__ import annotations

from collections.abc import Mapping

import click
from msgspec import Struct

from collectors.advice.finding import finding_lines, findings_document
from collectors.advice.of_sweep import findings_of_sweep
from collectors.advice.point_text import point_lines
from engine.job.spec import Permissions
from engine.strict_json import dump_json
from engine.study.trial_file import TrialFile
from engine.sweep.document import sweep_document
from engine.sweep.plan import SweepPlan
from engine.sweep.runner import SweepResult, SweepRunner
from engine.sweep.text import sweep_lines
from engine.sweep.trial import Trial
from engine.text import safe_text
from tui.headless.measuring import Bench, MeasuredRun, measure_loads
from tui.headless.watched_loads import exit_code
from tui.options.watching import Watching


class SweepOrder(Struct, frozen=True):
    """What to measure and what to do with it."""

    plan: SweepPlan
    permissions: Permissions
    as_json: bool
    trials: TrialFile[Trial] | None


class HeadlessSweep(MeasuredRun[Trial, SweepResult]):
    """Takes a plan from the preparation of its load to the last point."""

    def __init__(self, order: SweepOrder, bench: Bench) -> None:
        super().__init__(bench, order.plan.first, order.trials)
        done = () if order.trials is None else tuple(order.trials.done)
        control, watch = bench.control, bench.sampling.watch
        runner = SweepRunner(order.plan, control, self._keep, done, note=control.note_load, watch=watch)
        self.runner, self.result_if_done = runner, runner.result_if_done


def run_sweep(order: SweepOrder, watching: Watching) -> int:
    """Measure a plan until it is done or a signal comes, and print what it says; returns the exit code.

    Raises:
        LunscopeError: the load cannot be prepared or started.
    """
    result: SweepResult | None = None

    def measure(bench: Bench) -> int:
        nonlocal result
        sweep = HeadlessSweep(order, bench)
        try:
            load = sweep.drive(order.plan.armed, order.permissions)
        finally:
            result = sweep.result
        return exit_code(load, bench.control.status.state, bench.signals)

    def show(bench: Bench) -> int:
        if result is None:
            return 0
        _print(result, bench.control.status.targets, bench.sampling.watch.host(), as_json=order.as_json)
        return int(not result.is_complete)

    return measure_loads(watching, measure, show)


def _print(result: SweepResult, targets: tuple[str, ...], host: Mapping[str, object] | None, *, as_json: bool) -> None:
    findings = findings_of_sweep(result)
    if as_json:
        document = {**sweep_document(result, targets), "host": host, "findings": findings_document(findings)}
        click.echo(dump_json(document))
        return
    for line in (*sweep_lines(result), *point_lines(result), *finding_lines(findings)):
        click.echo(safe_text(line))
