"""A search for rates without a screen: prepared, measured trial by trial, and ended cleanly by a signal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import click
from msgspec import Struct

from collectors.advice.finding import Finding, finding_lines, findings_document
from collectors.advice.of_rates import findings_of_rates
from collectors.advice.of_sweep import findings_of_sweep
from collectors.advice.point_text import point_lines
from engine.job.spec import JobSpec, Permissions
from engine.rate_search.document import open_loop, rate_document
from engine.rate_search.plan import RatePlan
from engine.rate_search.runner import RateResult, RateRunner
from engine.rate_search.text import rate_lines
from engine.rate_search.trial import RateTrial
from engine.strict_json import dump_json
from engine.study.trial_file import TrialFile
from engine.sweep.document import sweep_document
from engine.sweep.runner import SweepResult
from engine.sweep.text import sweep_lines
from engine.text import safe_text
from tui.headless.measuring import Bench, MeasuredRun, measure_loads
from tui.headless.sweep import HeadlessSweep, SweepOrder
from tui.headless.watched_loads import HeadlessRun, exit_code
from tui.options.watching import Watching


class Rates(Struct, frozen=True):
    """The open loop to measure."""

    plan: RatePlan
    trials: TrialFile[RateTrial] | None = None


class RateOrder(Struct, frozen=True):
    """What to search and what to do with it."""

    rates: Callable[[SweepResult | None], Rates]
    """Makes the plan, once what the closed loops reached is known; may raise a LunscopeError."""
    permissions: Permissions
    as_json: bool
    closed: SweepOrder | None = None
    """The sweep of closed loops that is measured before."""


class HeadlessRateSearch(MeasuredRun[RateTrial, RateResult]):
    """Takes a plan from the preparation of its load to the last trial."""

    def __init__(self, rates: Rates, bench: Bench) -> None:
        super().__init__(bench, rates.plan.first, rates.trials)
        done = () if rates.trials is None else tuple(rates.trials.done)
        control, watch = bench.control, bench.sampling.watch
        self.runner = RateRunner(rates.plan, control, self._keep, done, note=control.note_load, watch=watch)


class _Outcome(Struct):
    """What the loads of an order left."""

    code: int = 0
    targets: tuple[str, ...] = ()
    host: Mapping[str, object] | None = None
    closed: SweepResult | None = None
    rates: RateResult | None = None


def run_rates(order: RateOrder, watching: Watching) -> int:
    """Measure the closed loops, if any are asked for, then search rates, and print what both say.

    Returns the exit code; a load that cannot be prepared or started is said in one line.
    """
    outcome = _Outcome()

    def measure(bench: Bench) -> int:
        _Loads(order, bench).drive_all(outcome)
        return outcome.code

    return measure_loads(watching, measure, lambda _bench: int(not _print(order, outcome)))


class _Loads(Struct, frozen=True):
    """Drives the closed loops and the open one, one after the other."""

    order: RateOrder
    bench: Bench

    def drive_all(self, outcome: _Outcome) -> None:
        """Measure as much as there is, into the outcome.

        Raises:
            LunscopeError: a load cannot be prepared or started, or there is no rate to measure.
        """
        closed = self.order.closed
        if closed is not None:
            sweep = HeadlessSweep(closed, self.bench)
            try:
                self._drive(sweep, closed.plan.armed, outcome)
            finally:
                outcome.closed = sweep.result
            if outcome.closed is None or not outcome.closed.is_complete:
                return
        rates = self.order.rates(outcome.closed)
        search = HeadlessRateSearch(rates, self.bench)
        try:
            self._drive(search, rates.plan.armed, outcome)
        finally:
            outcome.rates = search.result

    def _drive(self, load: HeadlessRun, job: JobSpec, outcome: _Outcome) -> None:
        result = load.drive(job, self.order.permissions)
        status = self.bench.control.status
        outcome.targets, outcome.host = status.targets, self.bench.sampling.watch.host()
        outcome.code = outcome.code or exit_code(result, status.state, self.bench.signals)


def _print(order: RateOrder, outcome: _Outcome) -> bool:
    """Print what there is; returns whether all of it was measured."""
    closed, rates = outcome.closed, outcome.rates
    if order.as_json:
        _print_json(outcome)
    else:
        for line in _lines(closed, rates):
            click.echo(safe_text(line))
    return (order.closed is None or (closed is not None and closed.is_complete)) and (
        rates is not None and rates.is_complete
    )


def _lines(closed: SweepResult | None, rates: RateResult | None) -> Iterator[str]:
    if closed is not None:
        yield from sweep_lines(closed)
    if rates is not None:
        yield from rate_lines(rates)
    if closed is not None:
        yield from point_lines(closed)
    yield from finding_lines(_findings(closed, rates))


def _findings(closed: SweepResult | None, rates: RateResult | None) -> tuple[Finding, ...]:
    of_closed = () if closed is None else findings_of_sweep(closed)
    return (*of_closed, *(() if rates is None else findings_of_rates(rates)))


def _print_json(outcome: _Outcome) -> None:
    closed, rates = outcome.closed, outcome.rates
    found = {"host": outcome.host, "findings": findings_document(_findings(closed, rates))}
    if closed is not None:
        document = sweep_document(closed, outcome.targets)
        document["open_loop"] = None if rates is None else open_loop(rates)
    elif rates is not None:
        document = rate_document(rates, outcome.targets)
    else:
        return
    click.echo(dump_json({**document, **found}))
