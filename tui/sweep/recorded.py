"""The sweeps and searches of a recording, as of a moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from engine.events import Event
from engine.rate_search.events import is_rates_begin, recorded_rates
from engine.sweep.events import is_sweep_begin
from tui.sweep.rate_state import RateState, recorded_rate_state
from tui.sweep.state import SweepState, recorded_state

State: TypeAlias = SweepState | RateState


def recorded_states(events: Sequence[Event]) -> tuple[State, ...]:
    """Read all that began among these events, in their order; without those that this version cannot read."""
    begins = [number for number, event in enumerate(events) if is_sweep_begin(event) or is_rates_begin(event)]
    spans = zip(begins, (*begins[1:], len(events)), strict=False)
    states = (_state(events[first:end]) for first, end in spans)
    return tuple(state for state in states if state is not None)


def _state(events: Sequence[Event]) -> State | None:
    if is_sweep_begin(events[0]):
        return recorded_state(events)
    found = recorded_rates(events)
    return None if found is None else recorded_rate_state(found)
