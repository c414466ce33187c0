"""A search for rates without a screen: prepared, measured trial by trial, and ended cleanly by a signal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import click

from engine.errors import LunscopeError
from engine.job.spec import JobSpec, Permissions
from engine.rate_search.document import open_loop, rate_document
from engine.rate_search.plan import RatePlan
from engine.rate_search.runner import RateProgress, RateResult, RateRunner
from engine.rate_search.text import rate_lines
from engine.rate_search.trial import RateTrial
from engine.rate_search.trial_file import RateTrialFile
from engine.running.control import LoadControl
from engine.sweep.document import sweep_document
from engine.sweep.runner import SweepResult
from engine.sweep.text import sweep_lines
from engine.text import safe_text
from tui.headless.leaving import leave
from tui.headless.measuring import MeasuredRun, Sampling
from tui.headless.monitor import READING_S
from tui.headless.one_run import HeadlessRun, exit_code
from tui.headless.signals import EndingSignals
from tui.headless.sweep import LAST_SAMPLE_S, HeadlessSweep, SweepOrder
from tui.options.watching import Watching, open_source, recording_exit


@dataclass(frozen=True, slots=True)
class RateOrder:
    """What to search and what to do with it."""

    plan: RatePlan
    permissions: Permissions
    as_json: bool
    trials: RateTrialFile | None = None
    closed: SweepOrder | None = None
    """The sweep of closed loops that is measured before."""


class HeadlessRateSearch(MeasuredRun[RateTrial, RateResult]):
    """Takes a plan from the preparation of its load to the last trial."""

    def __init__(self, order: RateOrder, control: LoadControl, sampling: Sampling, signals: EndingSignals) -> None:
        super().__init__(control, sampling, signals, order.plan.first, order.trials)
        done = () if order.trials is None else tuple(order.trials.done)
        watch = sampling.watch
        runner = RateRunner(order.plan, control, self._keep, done, note=control.note_load, watch=watch)
        self._runner, self._progress_line = runner, lambda: rate_progress_line(runner.progress)


@dataclass(slots=True)
class _Outcome:
    """What the loads of an order left."""

    code: int = 0
    targets: tuple[str, ...] = ()


def run_rates(order: RateOrder, watching: Watching) -> int:
    """Measure the closed loops, if any are asked for, then search rates, and print what both say.

    Returns the exit code; a load that cannot be prepared or started is said in one line.
    """
    control, outcome = LoadControl(), _Outcome()
    with EndingSignals() as signals:
        source, recording = open_source(watching, control)
        sampling = Sampling.of(source, control, watching)
        monitor = sampling.monitor
        sweep = None if order.closed is None else HeadlessSweep(order.closed, control, sampling, signals)
        search = HeadlessRateSearch(order, control, sampling, signals)
        try:
            monitor.start()
            for load, job in _loads(order, sweep, search):
                result = load.drive(job, order.permissions)
                outcome.targets = control.status.targets
                outcome.code = outcome.code or exit_code(result, control.status.state, signals)
            if recording is not None:
                monitor.wait_for_next(min(watching.interval_s, LAST_SAMPLE_S) + READING_S)
        except LunscopeError as error:
            click.echo(f"lunscope: {safe_text(str(error))}", err=True)
            outcome.code = error.exit_code
        finally:
            monitor.close()
        is_complete = _print(order, None if sweep is None else sweep.result, search.result, outcome.targets)
        code = outcome.code or int(not is_complete)
        if control.outstanding:
            leave(code or 1)
        return recording_exit(recording, code)


def _loads(
    order: RateOrder, sweep: HeadlessSweep | None, search: HeadlessRateSearch
) -> Iterator[tuple[HeadlessRun, JobSpec]]:
    if sweep is not None and order.closed is not None:
        yield sweep, order.closed.plan.armed
    if sweep is None or (sweep.result is not None and sweep.result.is_complete):
        yield search, order.plan.armed


def _print(order: RateOrder, closed: SweepResult | None, rates: RateResult | None, targets: tuple[str, ...]) -> bool:
    """Print what there is; returns whether all of it was measured."""
    if order.as_json:
        _print_json(closed, rates, targets)
    else:
        lines = [*(() if closed is None else sweep_lines(closed)), *(() if rates is None else rate_lines(rates))]
        for line in lines:
            click.echo(safe_text(line))
    return (order.closed is None or (closed is not None and closed.is_complete)) and (
        rates is not None and rates.is_complete
    )


def _print_json(closed: SweepResult | None, rates: RateResult | None, targets: tuple[str, ...]) -> None:
    if closed is not None:
        document = sweep_document(closed, targets)
        document["open_loop"] = None if rates is None else open_loop(rates)
    elif rates is not None:
        document = rate_document(rates, targets)
    else:
        return
    click.echo(json.dumps(document, allow_nan=False))


def rate_progress_line(progress: RateProgress) -> str:
    """Say in one line how far a search is."""
    left = f", about {progress.left_s:.0f} s left" if progress.left_s >= 1 else ""
    return f"{progress.done} trials{left}  rate {progress.rate:,.0f}"
