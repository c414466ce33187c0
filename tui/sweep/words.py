"""What the sweep screen says: progress, the verdict in one line, the answer in full, the point under the cursor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from collectors.field import Unit
from engine.sweep.knee import Answer, Shape
from engine.sweep.target_share import hottest_target
from engine.sweep.text import answer_lines, shape_words
from engine.text import safe_text
from tui.sweep.rows import BALANCE, HIGHEST, WITHIN, PointRow, interval
from tui.sweep.state import SweepPhase, SweepState
from tui.text.format import format_quantity

NO_SWEEP = "no sweep here: lunscope sweep --vary qd=1..64, or a recording of one, shows it"
STUDY_POINTS = "points of a study: its tables are in the view answer"
_SHORT_CELLS = 36
"""Cells up to which a reason is said beside the progress."""
MARKS = ((BALANCE, "best balance"), (WITHIN, "best within the limit"), (HIGHEST, "highest throughput"))


def progress_text(state: SweepState) -> str:
    """How far it is, what is measured now, and how long it still takes."""
    done = f"{state.points.done}/{state.expected} measured"
    match state.phase:
        case SweepPhase.WAITING:
            return f"waits to begin: {state.plan.words}"
        case SweepPhase.PREPARING:
            return "prepares the load"
        case SweepPhase.ENDED:
            count = state.points.done
            if state.is_complete:
                return f"COMPLETE: {count} measurements"
            return not_complete_text(state, f"{count} measurements were made")
    at = state.points.measuring
    now = "" if at is None else f"   now {state.plan.point_name(at)}"
    if state.phase is SweepPhase.PAUSED:
        return f"PAUSED   {done}{f'   after this point:{now[6:]}' if now else ''}"
    return f"{done}{left_text(state.left_s)}{now}"


class CanEnd(Protocol):
    """State of anything the sweep screen shows."""

    @property
    def phase(self) -> SweepPhase:
        """How far it is."""

    @property
    def ended(self) -> str:
        """Why it ended; empty where it did not."""


def reason_text(state: CanEnd) -> str:
    """Why it ended, where that takes a line of its own; else empty."""
    is_long = len(state.ended) > _SHORT_CELLS
    return state.ended if state.phase is SweepPhase.ENDED and is_long else ""


def not_complete_text(state: CanEnd, measured: str) -> str:
    """Say that it ended early, with what was measured and, where it is short, why."""
    why = "" if reason_text(state) else f"{safe_text(state.ended)}; "
    return f"NOT COMPLETE: {why}{measured}"


def fitting_text(parts: Iterable[str], width: int) -> str:
    """Join the parts that fit, none of them cut."""
    text = ""
    for part in parts:
        if len(text) + len(part) + 2 <= width:
            text += ("  " if text else "") + part
    return text


def left_text(left_s: float | None) -> str:
    """Say how long it still takes; empty where it is not known."""
    if left_s is None:
        return ""
    return f"   about {left_s / 60:.0f} min left" if left_s >= 90 else f"   about {left_s:.0f} s left"


def wish_text(state: SweepState) -> str:
    """Name the point that is set when the sweep ends; empty if nothing is."""
    return "" if state.wanted is None else f"on end: {state.plan.point_name(state.wanted)}"


def curve_name(state: SweepState, curve: int) -> str:
    """Name of a curve in brackets; empty if there is one only."""
    name = state.plan.curves[curve].name
    return f"[{name}] " if name else ""


def verdict_text(state: SweepState, curve: int, answer: Answer | None, width: int) -> str:
    """Say what a curve shows, in one line; with fewer digits where there is no room."""
    name = curve_name(state, curve)
    if state.plan.load is None:
        return "no axis of load varies: points without a curve"
    if answer is None:
        return f"{name}..."
    best, knob = answer.balance or answer.highest, state.plan.load.knob.key
    if best is None and _is_of_study(state, answer):
        return f"{name}{STUDY_POINTS}"
    if best is None:
        return f"{name}{shape_words(answer)}"
    what = "best balance" if answer.balance is not None else answer.highest_name
    low, high = interval(answer)
    load = f"{knob}={best.whole_load} ({low:.0f} to {high:.0f})"
    full = f"{name}{answer.shape}: {what} {load}, {best.at.iops:,.0f} IOPS at {best.at.latency_ns / 1e6:.3f} ms"
    if len(full) <= width:
        return full
    short = "balance" if answer.balance is not None else answer.highest_name.split()[0]
    rate = format_quantity(best.at.iops, Unit.PER_SECOND, 5)
    latency = format_quantity(best.at.latency_ns / 1e6, Unit.MILLISECONDS, 6)
    return f"{name}{answer.shape}: {short} {load} {rate} IOPS {latency} ms"


def answer_text(state: SweepState, answers: Sequence[Answer | None], first: int) -> Iterator[str]:
    """Write the answers of all curves, the chosen one first, then what went wrong."""
    if state.plan.load is None:
        yield "points without a curve: none of qd, threads and stripe_width varies"
    else:
        for index in (first, *(each for each in range(len(answers)) if each != first)):
            found, name = answers[index], state.plan.curves[index].name
            if found is not None and _is_of_study(state, found):
                continue
            if name:
                yield f"[{name}]"
            yield from ["..."] if found is None else answer_lines(found, state.plan)
    for note in state.notes:
        yield f"note: {safe_text(note)}"
    if state.phase is SweepPhase.ENDED and not state.is_complete:
        yield f"not complete: {safe_text(state.ended)}"


def _is_of_study(state: SweepState, answer: Answer) -> bool:
    """Whether a curve without an answer is one of a study, whose tables are what it is measured for."""
    return bool(state.plan.preset) and answer.shape is Shape.UNKNOWN


def point_text(state: SweepState, row: PointRow, width: int) -> str:
    """Write the figures of a point, as many as fit, none of them cut."""
    name = state.plan.point_name(row.point)
    if row.summary is None:
        return f"{name}: {safe_text(row.words)}"
    parts = [f"{name}: {row.summary.iops:,.0f} IOPS"]
    for metric in ("mean", "p99", "p99.9", "p50"):
        value = row.summary.latency_ms(metric)
        parts.append("" if value is None else f"{metric} {value:.3f} ms")
    parts.append(f"{format_quantity(row.figure('bytes_per_s') or 0.0, Unit.BYTES_PER_SECOND, 5)}B/s")
    parts.append(safe_text(row.words))
    return fitting_text(filter(None, parts), width)


def hottest_text(row: PointRow) -> str:
    """Name the target that is slower than its peers, with what it costs."""
    shares = row.summary.trials[-1].targets if row.summary is not None else ()
    hottest = hottest_target(shares)
    if hottest is None:
        return "no target is slower than its peers by 5 % or more" if len(shares) > 1 else ""
    name = safe_text(hottest.target.name)
    return f"{name} is the hottest: without its lag the mean latency would be {hottest.cost_pct:.0f} % lower"
