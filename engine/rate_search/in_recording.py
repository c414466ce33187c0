"""The sweeps and searches of a recording up to any moment, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from engine.events import Event
from engine.rate_search.answer import rate_answers
from engine.rate_search.events import RecordedRates, is_rates_begin, recorded_rates
from engine.rate_search.runner import RateCurve, RateResult
from engine.sweep.events import RecordedSweep, is_sweep_begin, recorded_sweep


def recorded_measurements(events: Sequence[Event]) -> list[RecordedSweep | RecordedRates]:
    """Read all that began among these events; without those that this version cannot read."""
    begins = [number for number, event in enumerate(events) if is_sweep_begin(event) or is_rates_begin(event)]
    spans = zip(begins, (*begins[1:], len(events)), strict=False)
    read = [_read(events[first:end]) for first, end in spans]
    return [each for each in read if each is not None]


def _read(events: Sequence[Event]) -> RecordedSweep | RecordedRates | None:
    return recorded_sweep(events) if is_sweep_begin(events[0]) else recorded_rates(events)


def recorded_result(found: RecordedRates) -> RateResult:
    """Evaluate a recorded search."""
    curves = tuple(
        RateCurve(name, knobs.queue_depth, trials, rate_answers(found.plan.search, trials))
        for (name, knobs), trials in zip(found.plan.curves, found.trials, strict=True)
    )
    return RateResult(found.plan, curves, found.ended or "it went on", (), 0.0)
