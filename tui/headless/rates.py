"""`lunscope sweep` for rates: the plan of what was asked for, its files, and the search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import click
from msgspec import Struct

from engine.errors import UsageError
from engine.job.knobs import Knobs
from engine.job.spec import Arrival, JobSpec, Permissions
from engine.rate_search.goal import RateGoal
from engine.rate_search.plan import RatePlan, RateRange, make_rate_plan, open_depth, parse_rate_range
from engine.rate_search.steps import steps_after
from engine.rate_search.trial import RateTrial
from engine.replacing import replace
from engine.study.trial_file import TrialFile
from engine.sweep.axes import SweepAxis
from engine.sweep.limit import Limit
from engine.sweep.plan import SweepPlan, make_plan, require_write_permission
from engine.sweep.runner import SweepResult
from engine.text import safe_text
from tui.headless.leaving import go_on_in_child
from tui.headless.precondition import precondition_code, preconditioning
from tui.headless.rate_search import RateOrder, Rates, run_rates
from tui.headless.sweep import SweepOrder
from tui.options.watching import Watching

OPEN_WORDS = "then an open loop at 10 % to 100 % of the highest throughput of each curve"
_SUFFIX = ".open"
"""Suffix of the file of the open loop, where --trials has the closed loops as well."""


class RatesAsked(Struct, frozen=True):
    """What the command line says of the search."""

    axes: tuple[SweepAxis, ...]
    """Axes of closed loops; the search is made for each combination of those that make no load."""
    limits: tuple[Limit, ...]
    goal: RateGoal
    rates: RateRange | None
    has_depth: bool
    """Whether the queue depth was chosen."""
    open_loop: bool = False
    """Whether the open loop is measured at shares of what the closed loops reach, and nothing is searched."""


class RateOutput(Struct, frozen=True):
    """Where the results go."""

    watching: Watching
    as_json: bool
    trials: Path | None
    warnings: Sequence[str]
    precondition: bool = False
    """Whether targets are preconditioned before anything is measured."""
    on_screen: Callable[[RateOrder, Watching], int] | None = None
    """Measures on the screens; None: without."""


def rate_ranges(vary: Sequence[str]) -> tuple[RateRange | None, tuple[str, ...]]:
    """Take the range of rates of an open loop out of the axes.

    Raises:
        UsageError: it is given twice, or cannot be.
    """
    read = [(text, parse_rate_range(text)) for text in vary]
    ranges = [each for _, each in read if each is not None]
    if len(ranges) > 1:
        raise UsageError("--vary rate: given twice: give one range")
    return next(iter(ranges), None), tuple(text for text, each in read if each is None)


def search_rates(job: JobSpec, asked: RatesAsked, permissions: Permissions, output: RateOutput) -> int:
    """Search the highest rates of a job; returns the exit code.

    Raises:
        LunscopeError: it cannot be meant, or a file cannot be used.
    """
    closed = _closed_plan(job, asked)
    curves = _curves(job, asked, closed)
    plan = None if asked.open_loop else make_rate_plan(job, asked.limits, asked.goal, asked.rates, curves)
    if closed is not None:
        require_write_permission(closed, permissions)
    plans = [each for each in (closed, plan) if each is not None]
    first = preconditioning(plans[-1].armed, permissions, wanted=output.precondition)
    words = (each.words for each in plans)
    for line in (*output.warnings, *words, *((OPEN_WORDS,) if plan is None else ())):
        click.echo(f"lunscope: {safe_text(line)}", err=True)
    go_on_in_child()
    code = precondition_code(first)
    if code:
        return code
    with ExitStack() as files:

        def rates(reached: SweepResult | None) -> Rates:
            made = plan or steps_after(required(reached), job, curves)
            return Rates(made, _opened(files, output.trials, made, is_second=closed is not None))

        order = RateOrder(rates, permissions, output.as_json)
        if plan is not None:
            # Its file is checked before anything is measured.
            searched = rates(None)
            order = replace(order, rates=lambda _reached: searched)
        if closed is not None:
            file = None if output.trials is None else files.enter_context(TrialFile(output.trials, closed))
            order = replace(order, closed=SweepOrder(closed, permissions, output.as_json, file))
        return (output.on_screen or run_rates)(order, output.watching)


def required(reached: SweepResult | None) -> SweepResult:
    """Return what the closed loops reached, which the command line asked for."""
    assert reached is not None
    return reached


def _opened(files: ExitStack, path: Path | None, plan: RatePlan, *, is_second: bool) -> TrialFile[RateTrial] | None:
    if path is None:
        return None
    path = path.with_name(path.name + _SUFFIX) if is_second else path
    file = files.enter_context(TrialFile(path, plan))
    if file.done:
        click.echo(f"lunscope: goes on after {len(file.done)} trials in {safe_text(str(path))}", err=True)
    return file


def _closed_plan(job: JobSpec, asked: RatesAsked) -> SweepPlan | None:
    if not asked.axes:
        return None
    return make_plan(replace(job, arrival=Arrival.CLOSED), asked.axes, asked.limits)


def _curves(job: JobSpec, asked: RatesAsked, closed: SweepPlan | None) -> list[tuple[str, Knobs]]:
    """Combine the other axes, with the highest load that is measured in closed loops, or a deep queue."""
    depth = job.knobs.queue_depth if asked.has_depth else open_depth(job)
    if closed is None:
        return [("", replace(job.knobs, queue_depth=depth))]
    curves = [(curve.name, closed.knobs_at(curve, max(curve.search.loads))) for curve in closed.curves]
    if any(axis.knob.id == "queue_depth" for axis in asked.axes):
        return curves
    return [(name, replace(knobs, queue_depth=depth)) for name, knobs in curves]
