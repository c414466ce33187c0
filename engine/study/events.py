"""A study as events of a session: written as it goes on, read back up to any moment of a recording.

The events are of kind load; versions that do not know a study show their texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct, field

from engine.events import Event
from engine.strict_json import JsonError, load_json
from engine.study.decoded import decoded

Data: TypeAlias = Mapping[str, str | float | None]
Note: TypeAlias = Callable[[str, Data], None]
"""Takes text and data of an event of the session."""

BEGIN, LEFT_OUT, END = "begin", "left out", "end"

Plan = TypeVar("Plan")
Trial = TypeVar("Trial")
Found = TypeVar("Found")
Value = TypeVar("Value")


class StudyReading(Struct, Generic[Plan, Trial]):
    """A study whose events are being read; what is damaged is left out."""

    plan: Plan
    trials: list[list[Trial]]
    """Trials by curve."""
    left_out: list[Data] = field(default_factory=list)
    ended: str | None = None
    """None while it goes on."""


class StudyEvents(Struct, Generic[Plan, Trial, Found], frozen=True):
    """How one kind of study is recorded."""

    key: str
    """Key of what an event of it says: its begin, a trial, a point that is left out, its end."""
    plan: Callable[[Data], tuple[Plan, int] | None]
    """Reads the plan and its number of curves; None where this version cannot."""
    trial: Callable[[str], Trial | None]
    """Reads a trial from its text; None where it is none."""
    found: Callable[[StudyReading[Plan, Trial]], Found]
    """Makes what is known of a study."""

    def begun(self, data: Data) -> StudyReading[Plan, Trial] | None:
        """Read the begin; None where this version cannot."""
        plan = self.plan(data)
        return None if plan is None else StudyReading(plan[0], [[] for _ in range(plan[1])])

    def add(self, reading: StudyReading[Plan, Trial], data: Data) -> None:
        """Read what follows the begin."""
        match data[self.key]:
            case "end":
                reading.ended = str(data.get("how", ""))
            case "left out":
                reading.left_out.append(data)
            case _:
                curve, trial = data.get("curve", 0), self.trial(str(data.get("trial", data.get("point"))))
                if isinstance(curve, int) and 0 <= curve < len(reading.trials) and trial is not None:
                    reading.trials[curve].append(trial)


def recorded_studies(events: Iterable[Event], kinds: Sequence[StudyEvents[Any, Any, Any]]) -> list[Any]:
    """Read all studies that began among these events, in their order; without those that this version cannot read."""
    readings: list[tuple[StudyEvents[Any, Any, Any], StudyReading[Any, Any] | None]] = []
    for event in events:
        kind = next((each for each in kinds if each.key in event.data), None)
        if kind is None:
            continue
        if event.data[kind.key] == BEGIN:
            readings.append((kind, kind.begun(event.data)))
        elif readings and readings[-1][0] is kind and readings[-1][1] is not None:
            kind.add(readings[-1][1], event.data)
    return [kind.found(reading) for kind, reading in readings if reading is not None]


def from_json(kind: type[Value], text: str) -> Value | None:
    """Read a value of a type from JSON; None where it is none."""
    try:
        return decoded(kind, load_json(text))
    except JsonError:
        return None
