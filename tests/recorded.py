"""The last study of each kind among events; None without one."""

from __future__ import annotations

from collections.abc import Iterable

from engine.events import Event
from engine.isolation.events import ISOLATION_EVENTS, RecordedIsolation
from engine.rate_search.events import RATE_EVENTS, RecordedRates
from engine.study.events import recorded_studies
from engine.sweep.events import SWEEP_EVENTS, RecordedSweep


def recorded_sweep(events: Iterable[Event]) -> RecordedSweep | None:
    return next(reversed(recorded_studies(events, (SWEEP_EVENTS,))), None)


def recorded_rates(events: Iterable[Event]) -> RecordedRates | None:
    return next(reversed(recorded_studies(events, (RATE_EVENTS,))), None)


def recorded_isolation(events: Iterable[Event]) -> RecordedIsolation | None:
    return next(reversed(recorded_studies(events, (ISOLATION_EVENTS,))), None)
