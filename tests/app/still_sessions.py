"""What measurements that stand still share: requests are remembered, events are recorded in given samples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from collectors.model import Sample
from engine.events import Event, EventKind
from engine.replacing import replace
from engine.study.order import StudyOrder
from engine.study.runner import StudyRunner
from tui.sweep.series import SessionGroup
from tui.sweep.session import StudySession


class RemembersRequests:
    """Takes the requests of the screen instead of a session."""

    asked: list[object]
    runner: StudyRunner[Any, Any, Any]

    @property
    def message(self) -> str:
        return "" if not self.asked else f"asked: {self.asked[-1]}"

    def toggle_pause(self) -> None:
        self.asked.append("pause")

    def skip(self) -> None:
        self.asked.append("skip")

    def stop(self) -> None:
        self.asked.append("stop")

    def use(self, point: object) -> str:
        self.asked += [] if self.runner.NO_KNOBS else [point]
        return self.runner.NO_KNOBS


def group_of(session: StudySession) -> SessionGroup:
    """A measurement that was asked for alone."""
    return SessionGroup(StudyOrder(session.study), [session], [])


def with_events(
    samples: Sequence[Sample], happened: Iterable[tuple[str, Mapping[str, object]]], first: int
) -> list[Sample]:
    """The samples with an event of the load in each from `first` on."""
    recorded = list(samples)
    for number, (text, data) in enumerate(happened, start=first):
        sample = recorded[number]
        event = Event(EventKind.LOAD, text, sample.time_ns, sample.monotonic_ns, json.loads(json.dumps(dict(data))))
        recorded[number] = replace(sample, events=(*sample.events, event))
    return recorded
