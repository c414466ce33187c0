"""The sweeps, searches and isolation curves of a recording, as of a moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from collectors.advice.measured import answer_sections
from collectors.reports.formats.text import section_lines
from engine.events import Event
from engine.isolation.events import RecordedIsolation
from engine.isolation.in_recording import RecordedMeasurement, recorded_measurements
from engine.sweep.events import RecordedSweep
from engine.sweep.presets.recorded import recorded_study, studies
from tui.sweep.isolation_state import IsolationState, recorded_isolation_state
from tui.sweep.rate_state import RateState, recorded_rate_state
from tui.sweep.state import SweepState, recorded_state

State: TypeAlias = SweepState | RateState | IsolationState


def recorded_states(events: Sequence[Event]) -> tuple[State, ...]:
    """Read all that began among these events, in their order; without those that this version cannot read."""
    read = recorded_measurements(events)
    tables = _study_tables([each for each in read if isinstance(each, RecordedSweep)])
    return tuple(_state(each, tables) for each in read)


def _state(found: RecordedMeasurement, tables: Iterator[tuple[str, ...]]) -> State:
    match found:
        case RecordedSweep():
            return recorded_state(found, next(tables))
        case RecordedIsolation():
            return recorded_isolation_state(found)
        case _:
            return recorded_rate_state(found)


def _study_tables(sweeps: Sequence[RecordedSweep]) -> Iterator[tuple[str, ...]]:
    """Yield for each sweep the tables of its study; nothing for one without a study."""
    for parts in studies(sweeps):
        study = recorded_study(parts)
        lines = () if study is None else tuple(section_lines(answer_sections([study])))
        yield from (lines for _ in parts)
