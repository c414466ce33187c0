"""What a recorded search says, evaluated again."""

from __future__ import annotations

from engine.rate_search.answer import rate_answers
from engine.rate_search.events import RecordedRates
from engine.rate_search.runner import RateCurve, RateResult


def recorded_result(found: RecordedRates) -> RateResult:
    """Evaluate a recorded search."""
    curves = tuple(
        RateCurve(name, knobs.queue_depth, trials, rate_answers(found.plan.search, trials))
        for (name, knobs), trials in zip(found.plan.curves, found.trials, strict=True)
    )
    return RateResult(found.plan, curves, found.ended or "it went on", (), 0.0)
