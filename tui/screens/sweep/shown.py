"""Which measurement the sweep screen shows: the last one, or a chosen one, of this process or of the recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from collectors.advice.measured import answer_sections
from collectors.reports.formats.text import section_lines
from engine.events import Event
from engine.isolation.events import RecordedIsolation, RecordedMeasurement, recorded_measurements
from engine.sweep.events import RecordedSweep
from engine.sweep.plan import SweepPlan
from engine.sweep.points import SweepPoints
from engine.sweep.presets.recorded import recorded_study, studies
from tui.app_state import AppState
from tui.screens.sweep.preset_group import study_lines
from tui.sweep.session import StudySession
from tui.sweep.state import StudyState, SweepPhase


class ShownMeasurement:
    """Finds states by their number; without a choice it follows the last."""

    def __init__(self, app_state: AppState) -> None:
        self._app_state = app_state
        self._number: int | None = None
        self._recorded: tuple[list[Event], tuple[State, ...]] | None = None
        """Events of a recording up to the moment that is shown, and the measurements in them."""

    @property
    def session(self) -> StudySession | None:
        """The measurement of this process; None if there is none."""
        sessions = self._app_state.sweeps.sessions
        return sessions[self._position(len(sessions))] if sessions else None

    def states(self) -> tuple[State, ...]:
        """All sweeps, searches and isolation curves, in their order."""
        sessions = self._app_state.sweeps.sessions
        if sessions:
            return tuple(session.state for session in sessions)
        frame = self._app_state.frame
        if frame is None:
            return ()
        past = [event for event in self._app_state.events.all() if event.monotonic_ns <= frame.monotonic_ns]
        if self._recorded is None or past != self._recorded[0]:
            self._recorded = past, recorded_states(past)
        return self._recorded[1]

    def state(self) -> State | None:
        """Return the one that is shown; None if there is none."""
        states = self.states()
        return states[self._position(len(states))] if states else None

    def closed_loop(self) -> SweepPoints | None:
        """Points of the closed loops that were measured before the one that is shown."""
        states = self.states()
        before = states[: len(states) if self._number is None else self._position(len(states))]
        return next((each.points for each in reversed(before) if isinstance(each.plan, SweepPlan)), None)

    def tables(self, state: State) -> Sequence[str]:
        """Write the tables of the preset that a sweep is a part of; live once one of its sweeps is over."""
        session, controller = self.session, self._app_state.controller
        for group in self._app_state.sweeps.groups if controller is not None else ():
            if session in group.sessions and any(each.state.phase is SweepPhase.ENDED for each in group.sessions):
                assert controller is not None
                return study_lines(group, controller.status.targets)
        return state.study

    @property
    def number_text(self) -> str:
        """Number of the measurement among all, where it is not the last; otherwise empty."""
        count = len(self.states())
        return "" if self._number is None or self._number >= count - 1 else f"({self._number + 1} of {count}) "

    def follow_last(self) -> None:
        """Show the last one from now on."""
        self._number = None

    def choose_next(self) -> None:
        """Show the next one, after the last the first."""
        count = len(self.states())
        if count:
            number = (count if self._number is None else self._position(count) + 1) % count
            self._number = None if number == count - 1 else number

    def _position(self, count: int) -> int:
        return count - 1 if self._number is None else min(self._number, count - 1)


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
