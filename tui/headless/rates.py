"""`lunscope sweep` for rates: the plan of what was asked for, its files, and the search."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from msgspec import Struct

from engine.errors import UsageError
from engine.job.knobs import Knobs
from engine.job.spec import Arrival, JobSpec, Permissions
from engine.rate_search.goal import RateGoal
from engine.rate_search.plan import RatePlan, RateRange, make_rate_plan, open_depth, parse_rate_range
from engine.rate_search.runner import RateRunner
from engine.rate_search.steps import steps_after
from engine.replacing import replace
from engine.study.order import NextStudy, Results, Study, StudyOrder
from engine.study.trial_file import TrialFile
from engine.sweep.axes import SweepAxis
from engine.sweep.limit import Limit
from engine.sweep.outer_knob import OuterKnob
from engine.sweep.plan import SweepPlan, make_plan, require_write_permission
from engine.sweep.runner import SweepRunner
from tui.headless.sweep import SweepOutput, begin, opened

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


def search_rates(job: JobSpec, asked: RatesAsked, permissions: Permissions, output: SweepOutput) -> int:
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

    def ordered(files: ExitStack) -> StudyOrder:
        # The file of a search is checked before anything is measured.
        searched = None if plan is None else opened_rates(files, plan)
        if closed is None:
            return StudyOrder(_required(searched), permissions)

        def follow(results: Results) -> Study:
            return searched or opened_rates(files, steps_after(results[0], job, curves))

        kept = None if output.trials is None else files.enter_context(TrialFile(output.trials, closed))
        first = Study(closed, SweepRunner, kept, "closed loop, 1 of 2")
        return StudyOrder(first, permissions, (NextStudy(follow),))

    def opened_rates(files: ExitStack, made: RatePlan) -> Study:
        path, part = output.trials, ""
        if closed is not None:
            path, part = None if path is None else path.with_name(path.name + _SUFFIX), "open loop, 2 of 2"
        return Study(made, RateRunner, opened(files, path, made, "trial"), part)

    words = (*(each.words for each in plans), *((OPEN_WORDS,) if plan is None else ()))
    return begin(plans[-1].armed, words, permissions, output, ordered)


def _required(study: Study | None) -> Study:
    """Return the search, which is planned where no closed loops are."""
    assert study is not None
    return study


def _closed_plan(job: JobSpec, asked: RatesAsked) -> SweepPlan | None:
    if not asked.axes:
        return None
    outer = next((axis.knob.key for axis in asked.axes if isinstance(axis.knob, OuterKnob)), None)
    if outer is not None:
        raise UsageError(f"--vary {outer}: an open loop varies knobs of the load only: set it beforehand")
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
