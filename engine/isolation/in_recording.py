"""The sweeps, searches and isolation curves of a recording up to any moment, in their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from engine.events import Event
from engine.isolation.events import ISOLATION_EVENTS, RecordedIsolation
from engine.rate_search.events import RATE_EVENTS, RecordedRates
from engine.study.events import recorded_studies
from engine.sweep.events import SWEEP_EVENTS, RecordedSweep

RecordedMeasurement: TypeAlias = RecordedSweep | RecordedRates | RecordedIsolation


def recorded_measurements(events: Iterable[Event]) -> list[RecordedMeasurement]:
    """Read all that began among these events; without those that this version cannot read."""
    found: list[RecordedMeasurement] = recorded_studies(events, (SWEEP_EVENTS, RATE_EVENTS, ISOLATION_EVENTS))
    return found
