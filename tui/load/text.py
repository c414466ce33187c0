"""The state of the load as text, and the keys to continue."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from textual.content import Content

from engine.backend.outstanding import waiting_text
from engine.running.status import LoadState, LoadStatus
from engine.text import safe_text
from tui.load.load_controller import LoadController
from tui.load.recorded import RecordedState
from tui.text.clock import span_text

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


def state_line(controller: LoadController | None, key_text: KeyText, recorded: RecordedState | None = None) -> Content:
    """State, engine, targets, time and errors; before the start, the keys to continue."""
    if controller is None:
        return _recorded_line(recorded)
    status = controller.status
    head: tuple[str, str] = (f" {status.state.upper()} ", _STYLES[status.state])
    keys = (_next_keys(status.state, key_text), "dim")
    return Content.assemble(head, keys, " ", *_badges(status), _middle(status, controller))


def _recorded_line(recorded: RecordedState | None) -> Content:
    head = Content.assemble((" Replay: recorded load (read-only) ", "bold"))
    if recorded is None:
        return head + Content.assemble((" no load started up to here", "dim"))
    ran = f" ran {span_text(recorded.elapsed_s)}: " if recorded.ended else f" running {span_text(recorded.elapsed_s)}"
    unknown = "" if recorded.job else "  knobs not recorded"
    return head + Content(f"{ran}{safe_text(recorded.ended)}{unknown}")


def _badges(status: LoadStatus) -> Iterator[tuple[str, str] | str]:
    """Yield the badges in a few words each; the message line explains them."""
    for label in dict.fromkeys(badge.label for badge in status.badges):
        yield (f"[{safe_text(label)}]", "$warning")
        yield " "


def _middle(status: LoadStatus, controller: LoadController) -> str:
    targets = _targets(status, controller)
    if status.state is LoadState.PREPARING or status.state is LoadState.STOPPING:
        share = "" if status.progress is None else f"{status.progress * 100:.0f} % "
        return f"{share}{targets}"
    if status.state in {LoadState.IDLE, LoadState.FAILED}:
        return f"{targets}, {controller.job.access}, {controller.job.knobs.mode}"
    errors = f"{status.errors} errors" if status.errors else "no errors"
    if status.damaged:
        errors = f"{status.damaged:,} DAMAGED, {errors}"
    if status.skipped:
        errors = f"{status.skipped:,} arrivals skipped, {errors}"
    if status.waits and status.state is LoadState.RUNNING:
        errors = f"waiting for writeback, {errors}"
    return f"{span_text(status.elapsed_s)}, epoch {status.epoch}, {errors}, {status.backend} on {targets}"


def _targets(status: LoadStatus, controller: LoadController) -> str:
    names = status.targets or tuple(target.path or "scratch file" for target in controller.job.targets)
    first = safe_text(names[0]) if names else "no target"
    return first if len(names) < 2 else f"{first} and {len(names) - 1} more"


def _next_keys(state: LoadState, key_text: KeyText) -> str:
    start, stop, edit = (key_text(f"load.{verb}") for verb in ("start", "stop", "edit"))
    if state in {LoadState.PREPARING, LoadState.RUNNING}:
        return f" {stop} stops "
    if state is LoadState.ARMED:
        return f" {start} starts, {stop} disarms "
    return "" if state is LoadState.STOPPING else f" {start} starts, {edit} edits "


def message_line(controller: LoadController | None, error: str) -> Content:
    """Return the last refusal or failure, else the load's own notice."""
    if error:
        return Content.assemble((safe_text(error), "bold $error"))
    status = controller.status if controller is not None else None
    if status is not None and status.outstanding and status.state in _UNDER_WAY:
        return Content.assemble((waiting_text(status.outstanding), "bold $error"))
    words = "" if status is None else "; ".join(filter(None, (status.tail, status.message)))
    if status is None or not words:
        return Content(" ")
    return Content.assemble((safe_text(words), "bold $error" if status.state is LoadState.FAILED else "$warning"))
