"""The state of a recorded load at a time: whether it ran, since when, and its knobs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from collectors.reports.scenario import RecordedLoad, recorded_loads
from engine.errors import LunscopeError
from engine.events import Event, EventKind
from engine.job.file import parse_job
from engine.job.knobs import KNOBS
from engine.job.spec import JobSpec
from engine.job.values import WrongTypeError


@dataclass(frozen=True, slots=True)
class RecordedState:
    """One run of a recorded load at a time."""

    job: JobSpec | None
    """The job with the knobs in force then; None if not recorded, or unreadable by this version."""
    elapsed_s: float
    """Since its start, up to its end."""
    ended: str
    """Text of its end event; empty while it runs."""


def recorded_state(events: Sequence[Event], now_ns: int) -> RecordedState | None:
    """Find the running or last load at a time of CLOCK_MONOTONIC; None before the first."""
    of_loads = [event for event in events if event.kind in (EventKind.LOAD, EventKind.KNOB)]
    load = _started_by(recorded_loads(of_loads), now_ns)
    if load is None:
        return None
    over = load.end is not None and load.end.monotonic_ns <= now_ns
    until_ns = load.end.monotonic_ns if over and load.end is not None else now_ns
    ended = load.end.text if over and load.end is not None else ""
    return RecordedState(_job_at(load, now_ns), (until_ns - load.start.monotonic_ns) / 1e9, ended)


def _started_by(loads: Sequence[RecordedLoad], now_ns: int) -> RecordedLoad | None:
    started = [load for load in loads if load.start.monotonic_ns <= now_ns]
    return started[-1] if started else None


def _job_at(load: RecordedLoad, now_ns: int) -> JobSpec | None:
    try:
        job = _parsed(str(load.start.data["job"]))
        turned = (turn for turn in load.turns if turn.monotonic_ns <= now_ns)
        knobs = {str(turn.data.get("knob")): turn.data.get("to") for turn in turned}
        values = {knob: KNOBS[knob].read(text) for knob, text in knobs.items()}
        return replace(job, knobs=replace(job.knobs, **values))
    except (LunscopeError, WrongTypeError, KeyError):
        return None


@functools.lru_cache(maxsize=8)
def _parsed(text: str) -> JobSpec:
    return parse_job(text, "recorded job")
