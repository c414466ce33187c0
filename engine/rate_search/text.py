"""The sentences of a search for rates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from engine.job.sizes import format_duration
from engine.rate_search.answer import RateAnswer, RateAnswers, RateBound, RateVerdict
from engine.rate_search.trial import RateTrial
from engine.sweep.busy_host import busy_host_text
from engine.sweep.limit import Limit

_MANY = 0.2
"""Share of the trials at a rate that exceed a limit which all I/Os together keep, from which that is said."""


def rate_text(rate: float) -> str:
    """Write a rate so that it differs from its neighbours: with three digits at least."""
    return f"{rate:,.0f}" if rate >= 1000 else f"{rate:.4g}"


def maximum_line(answers: RateAnswers, measured: Sequence[RateTrial], depth: int) -> str:
    """Say how far the search may go, and how many trials were made; `depth` is of slots per target."""
    lasted_s = sum(trial.duration_s for trial in measured)
    return maximum_words(answers.maximum, depth, f"{len(measured)} trials, {lasted_s:.0f} s", capped=answers.is_capped)


def maximum_words(maximum: float | None, depth: int, trials: str, *, capped: bool) -> str:
    """Say the same of the figures of a document."""
    if maximum is None:
        return f"the maximum of the load is not known yet; {trials}"
    if capped:
        return f"searched up to {rate_text(maximum)} IOPS, which the load carries; {trials}"
    return f"maximum of the load: {rate_text(maximum)} IOPS with QD {depth} per target busy; {trials}"


def answer_lines(answer: RateAnswer, answers: RateAnswers, *, is_ended: bool = True) -> Iterator[str]:
    """Write what is known of one limit, while the search goes on, too."""
    yield headline(answer, answers, is_ended=is_ended)
    yield from (f"  caution: {caution}" for caution in cautions(answer))
    yield from (f"  {line}" for line in bound_lines(answer.limit, answer.conditional, answer.lower, answer.upper))
    if answer.undecided:
        yield f"  {undecided_line(answer.undecided)}"


def bound_lines(
    limit: Limit, conditional: float | None, lower: RateBound | None, upper: RateBound | None
) -> Iterator[str]:
    """Say what completes within a limit, and what was seen at the rates on both sides of it."""
    if conditional is not None:
        yield f"conditional throughput {rate_text(conditional)}: I/Os per second that complete within the limit"
    for name, bound in (("lower bound", lower), ("upper bound", upper)):
        if bound is not None:
            yield f"{name} {rate_text(bound.rate)}: {evidence(limit, bound)}"


def undecided_line(rates: Sequence[float]) -> str:
    """Name the rates of which it is not known whether they keep a limit."""
    return f"undecided: {', '.join(map(rate_text, rates))}"


def headline(answer: RateAnswer, answers: RateAnswers, *, is_ended: bool = True) -> str:
    """Say in one line which rate keeps a limit, and on how many I/Os that rests."""
    limit, lower, upper = answer.limit.text, answer.lower, answer.upper
    match answer.verdict:
        case RateVerdict.NONE_KEEPS if upper is not None:
            at = f"not even {rate_text(upper.rate)} IOPS, the lowest tried"
            return f"{limit}: no rate keeps it: {at} ({_ios(upper)})"
        case RateVerdict.ALL_KEEP if lower is not None:
            beyond = "the highest rate asked for" if answers.is_capped else "the maximum of the load"
            return f"{limit}: even {beyond} keeps it, {rate_text(lower.rate)} IOPS ({_ios(lower)})"
        case RateVerdict.FOUND if lower is not None and upper is not None:
            bounds = f"{rate_text(lower.rate)} IOPS keep it, {rate_text(upper.rate)} exceed it"
            return f"{limit}: {bounds} ({_ios(lower)}; {_ios(upper)})"
    return f"{limit}: undecided{_undecided(answer)}: {_why(answer, is_ended=is_ended)}"


def _undecided(answer: RateAnswer) -> str:
    bounds = [each for each in (answer.lower, answer.upper) if each is not None]
    ios = answer.undecided_ios or sum(bound.ios for bound in bounds)
    known = (f"{rate_text(bound.rate)} {'keep' if bound is answer.lower else 'exceed'} it" for bound in bounds)
    return f" after {ios:,} I/Os ({', '.join(known) or 'no bounds yet'})" if ios else " (no bounds yet)"


def _why(answer: RateAnswer, *, is_ended: bool) -> str:
    if answer.needed_s is not None:
        time = format_duration(math.ceil(answer.needed_s))
        return f"too few in the time given to a rate; limit a lower percentile, or give more time: --goal sum={time}"
    return "it was ended before" if is_ended else "the search goes on"


def cautions(answer: RateAnswer) -> tuple[str, ...]:
    """Say what speaks against an answer; text, JSON and HTML have it alike."""
    lower, upper, found = answer.lower, answer.upper, list[str]()
    if lower is not None and lower.bad >= _MANY * (lower.good + lower.bad):
        trials, time_s = f"{lower.bad} of {lower.good + lower.bad} trials", f"{lower.exceeded_s:.0f} s"
        found.append(f"at {rate_text(lower.rate)} IOPS {trials} exceed it, {time_s} in all; all I/Os together keep it")
    if upper is not None and upper.good > upper.bad:
        trials = f"{upper.good} of {upper.good + upper.bad} trials"
        why = "stalls, or a load near its limit: measure again while the host is idle"
        found.append(f"at {rate_text(upper.rate)} IOPS {trials} keep it, but not all I/Os together ({why})")
    if upper is not None and answer.kept_above is not None:
        times = next((f", {each.rounds + 1} times," for each in answer.again if each.now.rate == upper.rate), "")
        both = f"{rate_text(upper.rate)} IOPS exceed it{times} and {rate_text(answer.kept_above)} keep it"
        found.append(f"{both}: measure again while nothing else uses the device")
    found += [
        f"{rate_text(each.now.rate)} IOPS exceeded it at first ({_ios(each.before)}) and were measured again: "
        f"they keep it ({_ios(each.now)})"
        for each in answer.again
        if each.is_kept
    ]
    if lower is not None and answer.stalled_share is not None:
        trials = f"all trials up to {rate_text(lower.rate)} IOPS, those set aside too"
        time = f"{_percent(answer.stalled_share)} % of the time"
        found.append(f"{trials}, exceed it for {time}: so often it stalled; measure for longer, with --goal sum=5m")
    if answer.host_busy_pct is not None:
        found.append(busy_host_text(answer.host_busy_pct))
    return tuple(found)


def evidence(limit: Limit, bound: RateBound) -> str:
    """Say what was seen at a rate."""
    trials = f"{bound.good} of {bound.good + bound.bad} trials keep it, {_ios(bound)}"
    if bound.latency_ns is None or limit.metric == "mean":
        return trials
    return f"{trials}, median {limit.metric} {bound.latency_ns / 1e6:.3f} ms"


def _ios(bound: RateBound) -> str:
    if bound.excess is None:
        return f"mean of {bound.ios:,} I/Os {(bound.latency_ns or 0.0) / 1e6:.3f} ms"
    return f"{bound.over:,} of {bound.ios:,} I/Os over it, {_percent(bound.excess)} %"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}" if share < 0.095 else f"{100 * share:.0f}"
