"""A recorded load as a scenario: its job, and every knob change at its time."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from collectors.session.time_format import iso_time
from engine.errors import UsageError
from engine.events import Event, EventKind
from engine.job.file import parse_job
from engine.job.knobs import KNOBS
from engine.job.scenario import Scenario, Turn, validate_scenario
from engine.job.toml_values import WrongTypeError
from engine.replacing import replace
from engine.text import safe_text

_NS = 1e9


class RecordedLoad(Struct, frozen=True):
    """One run of the load in a recording."""

    start: Event
    turns: tuple[Event, ...]
    end: Event | None
    """None if the recording ends before the load does."""


def recorded_loads(events: Sequence[Event]) -> tuple[RecordedLoad, ...]:
    """Find the loads of a recording, by time; several may run at once, each with a name."""
    loads: list[tuple[Event, list[Event], list[Event]]] = []
    last: dict[object, tuple[Event, list[Event], list[Event]]] = {}
    for event in sorted(events, key=lambda event: event.monotonic_ns):
        name = event.data.get("load_name")
        if event.kind is EventKind.LOAD and "job" in event.data:
            last[name] = (event, [], [])
            loads.append(last[name])
        elif name in last and event.kind is EventKind.LOAD and "ended" in event.data:
            last[name][2].append(event)
        elif name in last and event.kind is EventKind.KNOB and not last[name][2]:
            last[name][1].append(event)
    return tuple(RecordedLoad(start, tuple(turns), ends[0] if ends else None) for start, turns, ends in loads)


def scenario_of(events: Sequence[Event], number: int | None, end_ns: int, path: str) -> Scenario:
    """Make a scenario of a load in a recording, with the same duration.

    Args:
        events: all events of the recording.
        number: number of the load, from 1; None: the only one.
        end_ns: monotonic time of the end of the recording.
        path: path of the recording, for errors.

    Raises:
        UsageError: there is no such load, there are several, or an event cannot be read.
    """
    load = _chosen(recorded_loads(events), number, path)
    job = parse_job(str(load.start.data["job"]), f"{path}: recorded job")
    turns = _turns(load, path)
    ended = None if load.end is None else load.end.data.get("ended")
    if ended not in ("size", "steady") and (ended != "runtime" or job.runtime_s is None):
        over_ns = end_ns if load.end is None else load.end.monotonic_ns
        job = replace(job, runtime_s=_after(load, over_ns))
    scenario = Scenario(job, tuple(turn for turn in turns if job.runtime_s is None or turn.at_s < job.runtime_s))
    validate_scenario(scenario)
    return scenario


def _chosen(loads: Sequence[RecordedLoad], number: int | None, path: str) -> RecordedLoad:
    if not loads:
        raise UsageError(f"{path}: holds no load that says what it was: record one with lunscope run --record")
    if number is None and len(loads) > 1:
        begins = ", ".join(f"{index} {_begin(load)}" for index, load in enumerate(loads[:8], 1))
        raise UsageError(f"{path}: {len(loads)} loads: choose one with --load: {begins}")
    if number is not None and not 1 <= number <= len(loads):
        raise UsageError(f"--load {number}: {path} has 1 to {len(loads)}")
    return loads[(number or 1) - 1]


def _begin(load: RecordedLoad) -> str:
    name = load.start.data.get("load_name")
    time = iso_time(load.start.time_ns)
    return f"{time} [{safe_text(str(name))}]" if name else f"{time}"


def _after(load: RecordedLoad, moment_ns: int) -> float:
    """Seconds since the start of the run, to the microsecond; never 0."""
    return max(round((moment_ns - load.start.monotonic_ns) / _NS, 6), 1e-6)


def _turns(load: RecordedLoad, path: str) -> tuple[Turn, ...]:
    """Merge changes of one epoch: a change of several knobs has one event per knob."""
    by_epoch: dict[object, list[Event]] = {}
    for event in load.turns:
        by_epoch.setdefault(event.data.get("epoch"), []).append(event)
    return tuple(
        Turn(_after(load, together[0].monotonic_ns), tuple(_change(event, path) for event in together))
        for together in by_epoch.values()
    )


def _change(event: Event, path: str) -> tuple[str, object]:
    knob = str(event.data.get("knob"))
    if knob not in KNOBS:
        raise UsageError(f"{path}: the knob {safe_text(knob)} is not of this version: export it with a newer one")
    try:
        return knob, KNOBS[knob].read(event.data.get("to"))
    except (WrongTypeError, UsageError) as wrong:
        raise UsageError(f"{path}: {safe_text(event.text)}: cannot be read: {wrong}") from None
