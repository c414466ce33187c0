"""The state of the load as text, running or recorded, and the keys to continue."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from textual.content import Content

from collectors.paths.event_groups import event_groups
from collectors.reports.run_events import events_between
from collectors.session.recorded_loads import RecordedLoad, recorded_loads
from engine.backend.outstanding import waiting_text
from engine.errors import LunscopeError
from engine.events import Event, EventKind
from engine.job.file import parse_job
from engine.job.knobs import KNOBS
from engine.job.spec import JobSpec
from engine.job.toml_values import WrongTypeError
from engine.replacing import replace
from engine.running.status import LoadState, LoadStatus
from engine.text import safe_text
from tui.load.load_controller import LoadController
from tui.text.format import span_text


class RecordedState(Struct, frozen=True):
    """One run of a recorded load at a time."""

    job: JobSpec | None
    """The job with the knobs in force then; None if not recorded, or unreadable by this version."""
    elapsed_s: float
    """Since its start, up to its end."""
    ended: str
    """Text of its end event; empty while it runs."""
    at_once: tuple[str, ...] = ()
    """Names of the loads that run at this time, where there are several; the job belongs to the last."""


def recorded_state(events: Sequence[Event], now_ns: int) -> RecordedState | None:
    """Find the running or last load at a time of CLOCK_MONOTONIC; None before the first."""
    of_loads = [event for event in events if event.kind in (EventKind.LOAD, EventKind.KNOB)]
    loads = recorded_loads(of_loads)
    load = _started_by(loads, now_ns)
    if load is None:
        return None
    over = _is_over(load, now_ns)
    running = [load for load in loads if load.start.monotonic_ns <= now_ns and not _is_over(load, now_ns)]
    names = tuple(map(_name, running)) if len(running) > 1 else ()
    until_ns = load.end.monotonic_ns if over and load.end is not None else now_ns
    ended = load.end.text if over and load.end is not None else ""
    return RecordedState(_job_at(load, now_ns), (until_ns - load.start.monotonic_ns) / 1e9, ended, names)


def _name(load: RecordedLoad) -> str:
    """Return its name, or the host of a fleet that drives it."""
    return str(load.start.data.get("load_name") or load.start.text.partition(":")[0])


def _is_over(load: RecordedLoad, now_ns: int) -> bool:
    return load.end is not None and load.end.monotonic_ns <= now_ns


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


KeyText = Callable[[str], str]

_STYLES = {
    LoadState.IDLE: "bold",
    LoadState.PREPARING: "bold $warning",
    LoadState.ARMED: "bold reverse $warning",
    LoadState.RUNNING: "bold reverse $success",
    LoadState.STOPPING: "bold $warning",
    LoadState.FINISHED: "bold",
    LoadState.FAILED: "bold $error",
}


_UNDER_WAY = frozenset({LoadState.PREPARING, LoadState.ARMED, LoadState.RUNNING, LoadState.STOPPING})


REPLAYED = "Replay: recorded load (read-only)"
REWOUND = "Paused: the load as it was then"
OF_HOSTS = "Load of the hosts (read-only here)"


def state_line(
    controller: LoadController | None, key_text: KeyText, recorded: RecordedState | None = None, past: str = REPLAYED
) -> Content:
    """State, engine, targets, time and errors; before the start, the keys to continue.

    Args:
        controller: None for a time that is past.
        key_text: the key of an action.
        recorded: the load at that time.
        past: how that time comes to be shown, REPLAYED or REWOUND.
    """
    if controller is None:
        return _recorded_line(recorded, past)
    status = controller.status
    head: tuple[str, str] = (f" {status.state.upper()} ", _STYLES[status.state])
    keys = (_next_keys(status.state, key_text), "dim")
    figures, where = _middle(status, controller)
    return Content.assemble(head, keys, " ", figures, *_badges(status), where)


def _recorded_line(recorded: RecordedState | None, past: str) -> Content:
    head = Content.assemble((f" {past} ", "bold"))
    if recorded is None:
        return head + Content.assemble((" no load started up to here", "dim"))
    ran = f" ran {span_text(recorded.elapsed_s)}: " if recorded.ended else f" running {span_text(recorded.elapsed_s)}"
    unknown = "" if recorded.job else "  knobs not recorded"
    names = recorded.at_once
    beside = f" {len(names)} loads at once, these knobs are of [{safe_text(names[-1])}]" if names else ""
    return head + Content(f"{ran}{safe_text(recorded.ended)}{beside}{unknown}")


def _badges(status: LoadStatus) -> Iterator[tuple[str, str] | str]:
    """Yield the badges in a few words each; the message line explains them."""
    for label in dict.fromkeys(badge.label for badge in status.badges):
        yield (f"[{safe_text(label)}]", "$warning")
        yield " "


def _middle(status: LoadStatus, controller: LoadController) -> tuple[str, str]:
    """Time and errors, before which nothing is cut off, and on what it runs."""
    targets = _targets(status, controller)
    if status.job is not None and status.job.targets != controller.job.targets and not controller.has_load:
        return "", f"next: {_named(controller.job)}, {controller.job.access}, {controller.job.knobs.mode}"
    if status.state is LoadState.PREPARING or status.state is LoadState.STOPPING:
        share = "" if status.progress is None else f"{status.progress * 100:.0f} % "
        return "", f"{share}{targets}"
    if status.state in {LoadState.IDLE, LoadState.FAILED}:
        return "", f"{targets}, {controller.job.access}, {controller.job.knobs.mode}"
    errors = f"{status.errors} errors" if status.errors else "no errors"
    if status.damaged:
        errors = f"{status.damaged:,} DAMAGED, {errors}"
    if status.skipped:
        errors = f"{status.skipped:,} arrivals skipped, {errors}"
    if status.waits and status.state is LoadState.RUNNING:
        errors = f"waiting for outstanding I/Os, {errors}"
    return f"{span_text(status.elapsed_s)}, epoch {status.epoch}, {errors}, ", f"{status.backend} on {targets}"


def _targets(status: LoadStatus, controller: LoadController) -> str:
    return _first_of(status.targets) if status.targets else _named(controller.job)


def _named(job: JobSpec) -> str:
    return _first_of([target.path or "scratch file" for target in job.targets])


def _first_of(names: Sequence[str]) -> str:
    first = safe_text(names[0]) if names else "no target"
    return first if len(names) < 2 else f"{first} and {len(names) - 1} more"


def _next_keys(state: LoadState, key_text: KeyText) -> str:
    start, stop, edit = (key_text(f"load.{verb}") for verb in ("start", "stop", "edit"))
    if state in {LoadState.PREPARING, LoadState.RUNNING}:
        return f" {stop} stops "
    if state is LoadState.ARMED:
        return f" {start} starts, {stop} disarms "
    return "" if state is LoadState.STOPPING else f" {start} starts, {edit} edits "


def happened_text(events: Sequence[Event], now_ns: int) -> str:
    """Say what happened on the host while the running or last load ran, by cause: the newest, and how many more."""
    load = _started_by(recorded_loads([event for event in events if event.kind is EventKind.LOAD]), now_ns)
    if load is None:
        return ""
    until_ns = now_ns if load.end is None else min(load.end.monotonic_ns, now_ns)
    groups = event_groups(events_between(events, load.start.monotonic_ns, until_ns))
    if not groups:
        return ""
    more = f"; {len(groups) - 1:,} more before it" if len(groups) > 1 else ""
    return f"while it ran: {groups[-1].text}{more}"


def message_line(controller: LoadController | None, error: str, happened: str = "") -> Content:
    """Return the last refusal or failure, else the load's own notice and what happened on the host meanwhile."""
    if error:
        return Content.assemble((safe_text(error), "bold $error"))
    status = controller.status if controller is not None else None
    if status is not None and status.outstanding and status.state in _UNDER_WAY:
        return Content.assemble((waiting_text(status.outstanding), "bold $error"))
    own = () if status is None else (status.tail, status.message)
    words = "; ".join(filter(None, (*own, happened)))
    failed = status is not None and status.state is LoadState.FAILED
    return Content.assemble((safe_text(words), "bold $error" if failed else "$warning")) if words else Content(" ")
