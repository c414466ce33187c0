"""The end of the changes that the screens hold: restored, recorded, and a line for each."""

from __future__ import annotations

import threading

from engine.events import Event, EventKind
from engine.text import safe_text
from engine.tune.held import HeldChanges
from engine.tune.record import ChangeRecord
from tui.app_input import Recording

PATIENCE_S = 10.0
"""Longest wait for the kernel; the watchdogs go on restoring after it."""


def restore_all(held: HeldChanges, recording: Recording | None) -> list[str]:
    """Restore what is not kept; returns a line for each change, safe to print."""
    ended: list[ChangeRecord] = []
    in_force = held.in_force
    work = threading.Thread(target=lambda: ended.extend(held.close()), name="lunscope-tune-end", daemon=True)
    work.start()
    work.join(PATIENCE_S)
    if work.is_alive():
        numbers = ", ".join(str(one.record.number) for one in in_force)
        return [f"tune change {numbers}: the kernel has not answered; its watchdog restores it"]
    for record in ended:
        if recording is not None:
            text = f"tune change {record.number} {record.state}: at the end of lunscope"
            recording.add_event(Event.now(EventKind.TUNE, text, change=record.number, state=record.state))
    whats = {one.record.number: "; ".join(one.record.summary) for one in in_force}
    return [line for record in ended for line in _lines(record, whats.get(record.number, ""))]


def _lines(record: ChangeRecord, what: str) -> list[str]:
    lines = [] if record.left else [f"tune change {record.number} undone: {what}"]
    return [safe_text(text) for text in (*lines, *(f"tune change {record.number}: {text}" for text in record.problems))]
