"""What changes of tunables did, computed beside the screen and as lines of text."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from collectors.compare.comparison import FieldComparison, RowComparison
from collectors.reports.documents.comparison import change_text
from collectors.tune_effect import TuneEffect, effect_windows, tune_effect
from engine.errors import LunscopeError
from engine.events import Event, EventKind
from engine.newest_work import PATIENCE_S, NewestWork
from engine.statistics.verdict import Verdict
from engine.text import safe_text
from tui.app_state import AppState
from tui.history.intervals import RecordedIntervals
from tui.text.format import format_quantity
from tui.transport import ReplayTransport

_WIDTH = 6
_STYLES = {Verdict.BETTER: "$success", Verdict.WORSE: "$error"}
_Key = tuple[int, str, str]


class TuneEffectFound(Message, bubble=False):
    """A comparison is there, or has more samples."""


class TuneEffects:
    """Effects of the events that were asked for; in a recording those up to the moment shown."""

    def __init__(self, app_state: AppState, receiver: Widget) -> None:
        self._state = app_state
        self._receiver = receiver
        """Takes a `TuneEffectFound` for each newer result."""
        self._work = NewestWork("lunscope-tune-effect", PATIENCE_S)
        self._lock = threading.Lock()
        self._found: dict[_Key, tuple[int, TuneEffect]] = {}
        """Each with the moment that it was computed for."""

    def of(self, events: Sequence[Event], now_ns: int) -> list[TuneEffect | None]:
        """Return the newest results; None where there is none yet. Never blocks."""
        with self._lock:
            known = [self._found.get(_key(event)) for event in events]
        wanted = [event for event, found in zip(events, known, strict=True) if not _holds(found, now_ns)]
        if wanted:
            every = self._state.events.all()
            self._work.request(lambda: self._compute(wanted, every, now_ns))
        return [None if found is None or now_ns < event.time_ns else found[1]
                for event, found in zip(events, known, strict=True)]  # fmt: skip

    def _compute(self, wanted: Sequence[Event], events: Sequence[Event], now_ns: int) -> None:
        transport = self._state.transport
        source = (
            RecordedIntervals(transport.source)
            if isinstance(transport, ReplayTransport)
            else self._state.history.intervals
        )
        try:
            found = {}
            for event in wanted:
                windows = effect_windows(event, events, transport.start_ns, now_ns)
                found[_key(event)] = now_ns, tune_effect(event, windows, source.between, self._state.interval_s)
        except LunscopeError:
            return  # The recording is damaged here, which the transport says.
        with self._lock:
            self._found |= found
        if self._receiver.is_running:
            self._receiver.post_message(TuneEffectFound())


def _key(event: Event) -> _Key:
    return event.time_ns, str(event.data.get("change")), str(event.data.get("state"))


def _holds(found: tuple[int, TuneEffect] | None, now_ns: int) -> bool:
    """Whether a result is still that of this moment."""
    if found is None:
        return False
    at_ns, effect = found
    return at_ns == now_ns or (effect.comparison is not None and effect.end_ns <= now_ns)


def shown_changes(events: Sequence[Event], now_ns: int, most: int) -> list[Event]:
    """List the newest changes of tunables up to a moment, the newest first."""
    found = [event for event in events if event.kind is EventKind.TUNE and event.time_ns <= now_ns]
    return found[: -most - 1 : -1]


def effect_line(effect: TuneEffect | None) -> Content:
    """Write one line: the load, or the first device that was changed; dim while samples are missing."""
    if effect is None:
        return Content.styled("comparing before and after ..", "dim")
    if effect.words:
        return Content.styled(effect.words, "dim")
    if not effect.rows:
        return Content.styled("no I/O before or after it", "dim")
    parts = [_row(row) for row in effect.rows[:1]]
    return Content.assemble(*parts, (f"  ({effect.after} samples each)", "dim"))


def _row(row: RowComparison) -> Content:
    name = "load" if row.a.table == "load_total" else safe_text(row.a.name)
    figures = [_figure(found) for found in row.fields if not math.isnan(found.a.mean)]
    return Content.assemble((f"{name} ", "bold"), Content("  ").join(figures))


def _figure(found: FieldComparison) -> Content:
    a, b = (format_quantity(value, found.field.unit, _WIDTH).strip() for value in (found.a.mean, found.b.mean))
    verdict = "same" if found.verdict is Verdict.EQUIVALENT else str(found.verdict)
    style = _STYLES.get(found.verdict, "dim" if found.verdict is Verdict.UNDECIDED else "")
    change = change_text(found).replace(" %", "%").strip()
    return Content.assemble((f"{found.field.title} ", "dim"), f"{a} > {b} ", (f"{change} {verdict}", style))
