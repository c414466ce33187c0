"""A study as events of a session: written as it goes on, read back up to any moment of a recording.

The events are of kind load; versions that do not know a study show their texts.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct

from engine.errors import UsageError
from engine.events import Event
from engine.strict_json import JsonError, load_json
from engine.study.decoded import decoded, encoded
from engine.study.points import LeftOut, StudyPoints
from engine.study.trial_file import CURVE, TrialKind

Data: TypeAlias = Mapping[str, str | float | None]
Note: TypeAlias = Callable[[str, Data], None]
"""Takes text and data of an event of the session."""

_BEGIN, _LEFT_OUT, _END = "begin", "left out", "end"
_HOW = "how"
_DEVICES = "devices"
"""Key of a trial that no event has: a recording has the counters of the devices itself."""

Plan = TypeVar("Plan")
Begin = TypeVar("Begin", bound=Struct)
Trial = TypeVar("Trial")
Value = TypeVar("Value")


class RecordedStudy(Struct, Generic[Plan, Trial], frozen=True):
    """A study at one moment of a recording."""

    plan: Plan
    """As far as the begin says it, over the default job; the job is in the events of the load."""
    points: StudyPoints[Any, Trial]
    ended: str | None = None
    """How it ended; None while it goes on."""

    @property
    def is_over(self) -> bool:
        """Whether its end is among the events."""
        return self.ended is not None


class StudyEvents(Struct, Generic[Plan, Begin, Trial], frozen=True):
    """How one kind of study is recorded; what is damaged is left out when it is read."""

    key: str
    """Key of what an event of it says: its begin, a trial, a point that is left out, its end."""
    trial_word: str
    """What the events of trials say."""
    kind: TrialKind[Trial]
    begin: type[Begin]
    """What the begin has; fields that came later have defaults."""
    plan: Callable[[Begin], tuple[Plan, int]]
    """Makes the plan and its number of curves; raises ValueError or a UsageError where this version cannot."""
    recorded: type[RecordedStudy[Plan, Trial]]
    left_out: Callable[[Data], LeftOut | None] = lambda _data: None
    """Reads a point that is left out; None where it is none."""

    def begin_data(self, begin: Begin) -> Data:
        """Write the start."""
        return {self.key: _BEGIN, **encoded(begin)}

    def trial_data(self, curve: int, trial: Trial) -> Data:
        """Write a trial."""
        document = self.kind.write(trial)
        text = json.dumps({**document, _DEVICES: None} if _DEVICES in document else document, allow_nan=False)
        where = {} if self.kind.is_nested else {CURVE: curve}
        return {self.key: self.trial_word, **where, self.kind.key: text}

    def left_out_data(self, **point: str | float) -> Data:
        """Write a point that is not measured."""
        return {self.key: _LEFT_OUT, **point}

    def end_data(self, how: str) -> Data:
        """Write the end."""
        return {self.key: _END, _HOW: how}

    def _begun(self, data: Data) -> _Reading | None:
        begin = decoded(self.begin, data)
        try:
            plan, curves = (None, 0) if begin is None else self.plan(begin)
        except (UsageError, ValueError):
            return None
        return None if plan is None else _Reading(self.recorded, plan, [[] for _ in range(curves)], [])

    def _add(self, reading: _Reading, data: Data) -> None:
        match data[self.key]:
            case "end":
                reading.ended = str(data.get(_HOW, ""))
            case "left out":
                reading.left_out.append(self.left_out(data))
            case _:
                curve, trial = data.get(CURVE, 0), _trial(self.kind, str(data.get(self.kind.key)))
                if isinstance(curve, int) and 0 <= curve < len(reading.trials) and trial is not None:
                    reading.trials[curve].append(trial)


class _Reading(Struct):
    recorded: type[RecordedStudy[Any, Any]]
    plan: Any
    trials: list[list[Any]]
    left_out: list[LeftOut | None]
    ended: str | None = None

    @property
    def study(self) -> RecordedStudy[Any, Any]:
        left_out = tuple(each for each in self.left_out if each is not None)
        return self.recorded(self.plan, StudyPoints(tuple(map(tuple, self.trials)), left_out), self.ended)


def recorded_studies(events: Iterable[Event], kinds: Sequence[StudyEvents[Any, Any, Any]]) -> list[Any]:
    """Read all studies that began among these events, in their order; without those that this version cannot read."""
    readings: list[tuple[StudyEvents[Any, Any, Any], _Reading | None]] = []
    for event in events:
        kind = next((each for each in kinds if each.key in event.data), None)
        if kind is None:
            continue
        if event.data[kind.key] == _BEGIN:
            readings.append((kind, kind._begun(event.data)))
        elif readings and readings[-1][0] is kind and readings[-1][1] is not None:
            kind._add(readings[-1][1], event.data)
    return [reading.study for _, reading in readings if reading is not None]


@functools.lru_cache(maxsize=8192)
def _trial(kind: TrialKind[Trial], text: str) -> Trial | None:
    try:
        return kind.read(load_json(text))
    except JsonError:
        return None


def from_json(kind: type[Value], text: str) -> Value | None:
    """Read a value of a type from JSON; None where it is none."""
    try:
        return decoded(kind, load_json(text))
    except JsonError:
        return None
