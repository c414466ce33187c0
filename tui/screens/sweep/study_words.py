"""The lines around the points of any study: how far it is, why it ended, what was asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from engine.text import safe_text
from tui.sweep.state import StudyState, SweepPhase

_SHORT_CELLS = 36
"""Cells up to which a reason is said beside the progress."""


class StudyWords(Struct, frozen=True):
    """What is said of a study, in its own words."""

    done: str
    """How far it is, such as "3/12 measured"."""
    measured: str
    """What was measured, such as "3 measurements"."""
    legend: str
    """What the marks of its table mean."""
    waits: str
    """How much it is."""
    prepares: str = "the load"
    made: str = "were made"
    in_hand: str = "point"
    is_late: bool = False
    """Whether it takes longer than was thought."""


def progress_text(state: StudyState[Any, Any, Any], words: StudyWords, now: str) -> str:
    """How far it is, what is measured now, and how long it still takes."""
    match state.phase:
        case SweepPhase.WAITING:
            return f"waits to begin: {words.waits}"
        case SweepPhase.PREPARING:
            return f"prepares {words.prepares}"
        case SweepPhase.ENDED:
            if state.is_complete:
                return f"COMPLETE: {words.measured}"
            why = "" if reason_text(state) else f"{safe_text(state.ended)}; "
            return f"NOT COMPLETE: {why}{words.measured} {words.made}"
        case SweepPhase.PAUSED:
            return f"PAUSED   {words.done}{f'   after this {words.in_hand}: {now}' if now else ''}"
    left = "   takes longer than usual: noisy" if words.is_late else _left_text(state.left_s)
    return f"{words.done}{left}{f'   now {now}' if now else ''}"


def reason_text(state: StudyState[Any, Any, Any]) -> str:
    """Why it ended, where that takes a line of its own; else empty."""
    is_long = len(state.ended) > _SHORT_CELLS
    return state.ended if state.phase is SweepPhase.ENDED and is_long else ""


def fitting_text(parts: Iterable[str], width: int) -> str:
    """Join the parts that fit, none of them cut."""
    text = ""
    for part in parts:
        if len(text) + len(part) + 2 <= width:
            text += ("  " if text else "") + part
    return text


def _left_text(left_s: float | None) -> str:
    """Say how long it still takes; empty where it is not known."""
    if left_s is None:
        return ""
    return f"   about {left_s / 60:.0f} min left" if left_s >= 90 else f"   about {left_s:.0f} s left"
