"""The sweeps, searches and isolation curves of a recording up to any moment, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from engine.events import Event
from engine.isolation.events import RecordedIsolation, is_isolation_begin, recorded_isolation
from engine.rate_search.events import RecordedRates, is_rates_begin, recorded_rates
from engine.sweep.events import RecordedSweep, is_sweep_begin, recorded_sweep

RecordedMeasurement: TypeAlias = RecordedSweep | RecordedRates | RecordedIsolation
_KINDS = (
    (is_sweep_begin, recorded_sweep),
    (is_rates_begin, recorded_rates),
    (is_isolation_begin, recorded_isolation),
)


def recorded_measurements(events: Sequence[Event]) -> list[RecordedMeasurement]:
    """Read all that began among these events; without those that this version cannot read."""
    begins = [number for number, event in enumerate(events) if any(begins(event) for begins, _ in _KINDS)]
    spans = zip(begins, (*begins[1:], len(events)), strict=False)
    read = [_read(events[first:end]) for first, end in spans]
    return [each for each in read if each is not None]


def _read(events: Sequence[Event]) -> RecordedMeasurement | None:
    read = next(read for begins, read in _KINDS if begins(events[0]))
    return read(events)
