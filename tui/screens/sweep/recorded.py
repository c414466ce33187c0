"""The sweeps, searches and isolation curves of a recording, as of a moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from collectors.advice.measured import answer_sections
from collectors.reports.formats.text import section_lines
from engine.events import Event
from engine.isolation.events import RecordedIsolation
from engine.isolation.in_recording import RecordedMeasurement, recorded_measurements
from engine.sweep.events import RecordedSweep
from engine.sweep.presets.recorded import recorded_study, studies
from tui.sweep.state import StudyState, SweepPhase

State: TypeAlias = StudyState[Any, Any, Any]


def recorded_states(events: Sequence[Event]) -> tuple[State, ...]:
    """Read all that began among these events, in their order; without those that this version cannot read."""
    read = recorded_measurements(events)
    tables = _study_tables([each for each in read if isinstance(each, RecordedSweep)])
    return tuple(_state(each, tables) for each in read)


def _state(found: RecordedMeasurement, tables: Iterator[tuple[str, ...]]) -> State:
    phase, points = SweepPhase.ENDED if found.is_over else SweepPhase.RECORDED, found.points
    match found:
        case RecordedSweep(plan=plan):
            notes = tuple(f"{plan.point_name(each.point)}: {each.words}" for each in points.left_out)
            part, count = ": ".join(filter(None, (plan.preset, plan.part))), max(plan.trials, points.done)
            ended, study = found.ended or "", next(tables)
            return StudyState(plan, points, phase, count, ended=ended, notes=notes, part=part, study=study)
        case RecordedIsolation(study=study_so_far):
            ended = study_so_far.how_ended if found.is_over else ""
            return StudyState(study_so_far, points, phase, found.plan.expected, ended=ended)
        case _:
            return StudyState(found.plan, points, phase, points.done, ended=found.ended or "")


def _study_tables(sweeps: Sequence[RecordedSweep]) -> Iterator[tuple[str, ...]]:
    """Yield for each sweep the tables of its study; nothing for one without a study."""
    for parts in studies(sweeps):
        study = recorded_study(parts)
        lines = () if study is None else tuple(section_lines(answer_sections([study])))
        yield from (lines for _ in parts)
