"""The tables and sentences of a search for rates, as `lunscope sweep` prints them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from engine.rate_search.answer import RateAnswer, RateAnswers, RateBound, RateVerdict
from engine.rate_search.runner import RateCurve, RateResult
from engine.rate_search.search import on_grid
from engine.rate_search.trial import RateTrial
from engine.sweep.limit import Limit
from engine.sweep.text import aligned

_COLUMNS = ("rate", "IOPS", "mean ms", "p99 ms", "p99.9 ms", "n")


def rate_lines(result: RateResult) -> Iterator[str]:
    """Write a whole search."""
    for trouble in result.troubles:
        yield f"note: {trouble}"
    for curve in result.curves:
        if curve.trials:
            yield from _curve_lines(result, curve)
    if not result.is_complete:
        done = sum(len(curve.trials) for curve in result.curves)
        yield f"not complete: {result.ended}; {done} trials were made"


def _curve_lines(result: RateResult, curve: RateCurve) -> Iterator[str]:
    name = f", {curve.name}" if curve.name else ""
    yield f"[open loop, {result.plan.job.arrival} arrivals{name}]"
    limits = result.plan.limits
    rows = [_row(limits, trials) for _, trials in sorted(on_grid(curve.trials).items())]
    yield from aligned((*_COLUMNS, *(limit.text for limit in limits), ""), rows)
    if limits:
        yield maximum_line(curve.answers, curve.trials, curve.depth)
    for answer in curve.answers.limits:
        yield from answer_lines(answer, curve.answers)
    yield ""


def _row(limits: Sequence[Limit], trials: Sequence[RateTrial]) -> tuple[str, ...]:
    latencies = (_median_ms(trials, metric) for metric in ("mean", "p99", "p99.9"))
    kept = (f"{sum(trial.keeps(limit) for trial in trials)} of {len(trials)}" for limit in limits)
    skipped, failing = sum(trial.skipped for trial in trials), {name for trial in trials for name in trial.failing}
    notes = [f"{skipped:,} arrivals skipped"] if skipped else []
    notes += [] if all(trial.is_sustained for trial in trials) else ["not carried"]
    notes += [f"{name} fails" for name in sorted(failing)]
    iops = statistics.median(trial.iops for trial in trials)
    return (f"{trials[0].rate:,.0f}", f"{iops:,.0f}", *latencies, str(len(trials)), *kept, ", ".join(notes))


def _median_ms(trials: Sequence[RateTrial], metric: str) -> str:
    known = [trial.latencies_ns[metric] for trial in trials if metric in trial.latencies_ns]
    return f"{statistics.median(known) / 1e6:.3f}" if known else "-"


def maximum_line(answers: RateAnswers, measured: Sequence[RateTrial], depth: int) -> str:
    """Say how far the search may go, and how many trials were made; `depth` is of slots per target."""
    trials = f"{len(measured)} trials, {sum(trial.duration_s for trial in measured):.0f} s"
    maximum = answers.maximum
    if maximum is None:
        return f"the maximum of the load is not known yet; {trials}"
    if answers.is_capped:
        return f"searched up to {maximum:,.0f} IOPS, which the load carries; {trials}"
    return f"maximum of the load: {maximum:,.0f} IOPS with QD {depth} per target busy; {trials}"


def answer_lines(answer: RateAnswer, answers: RateAnswers, *, is_ended: bool = True) -> Iterator[str]:
    """Write what is known of one limit, while the search goes on, too."""
    limit, lower, upper = answer.limit.text, answer.lower, answer.upper
    match answer.verdict:
        case RateVerdict.NONE_KEEPS if upper is not None:
            yield f"{limit}: no rate keeps it: not even {upper.rate:,.1f} IOPS does ({_trials(upper)})"
        case RateVerdict.ALL_KEEP if lower is not None:
            beyond = "the highest rate asked for" if answers.is_capped else "the maximum of the load"
            yield f"{limit}: even {beyond} keeps it, {lower.rate:,.0f} IOPS ({_trials(lower)})"
        case RateVerdict.FOUND if lower is not None and upper is not None:
            yield f"{limit}: {lower.rate:,.0f} IOPS keep it, {upper.rate:,.0f} exceed it"
        case _:
            why = "it was ended before" if is_ended else "the search goes on"
            ends = (f"{end} {bound.rate:,.0f}" for end, bound in (("lower", lower), ("upper", upper)) if bound)
            yield f"{limit}: undecided ({', '.join(ends) or 'no bounds yet'}): {why}"
    yield from _evidence(answer)


def _evidence(answer: RateAnswer) -> Iterator[str]:
    lower, upper = answer.lower, answer.upper
    if answer.conditional is not None:
        yield f"  conditional throughput {answer.conditional:,.0f}: I/Os per second that complete within the limit"
    for name, bound in (("lower bound", lower), ("upper bound", upper)):
        if bound is not None:
            yield f"  {name} {bound.rate:,.0f}: {_trials(bound)}{_latency(answer.limit, bound)}"
    if lower is not None and lower.bad:
        yield f"  caution: at {lower.rate:,.0f} IOPS the limit was exceeded for {lower.exceeded_s:.0f} s all the same"
    if answer.undecided:
        rates = ", ".join(f"{rate:,.0f}" for rate in answer.undecided)
        yield f"  undecided: {rates}"


def _trials(bound: RateBound) -> str:
    return f"{bound.good} of {bound.good + bound.bad} trials keep it, {_percent(bound.excess)} % of all I/Os over it"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}" if share < 0.095 else f"{100 * share:.0f}"


def _latency(limit: Limit, bound: RateBound) -> str:
    return "" if bound.latency_ns is None else f", median {limit.metric} {bound.latency_ns / 1e6:.3f} ms"
