"""The lines around the tables of the sweep screen, for each kind of measurement."""

from __future__ import annotations

from msgspec import Struct

from engine.isolation.factor import FactorOf
from tui.sweep.isolation_state import IsolationState
from tui.sweep.isolation_words import isolation_progress_text
from tui.sweep.rate_state import RateState
from tui.sweep.rate_words import rate_progress_text
from tui.sweep.recorded import State
from tui.sweep.words import MARKS, progress_text, reason_text, wish_text


class StateWords(Struct, frozen=True):
    """What the screen says of a measurement, in one line each."""

    progress: str
    reason: str
    """Why it ended; empty before."""
    wish: str
    """What the operator asked for and is not done yet."""
    legend: str
    """What the marks of its table mean."""


def state_words(state: State) -> StateWords:
    """Put a state in words."""
    match state:
        case RateState():
            wish = "" if state.wanted is None else f"on end: {state.plan.point_name(state.wanted)}"
            return StateWords(rate_progress_text(state), reason_text(state), wish, _rate_legend(state))
        case IsolationState():
            legend = "iso p5: p99 alone / p99 beside, 5th percentile of the seconds"
            if state.study.figure is FactorOf.MEAN:
                legend = legend.replace("p99", "mean")
            return StateWords(isolation_progress_text(state), reason_text(state), "", legend)
        case _:
            marks = "  ".join(f"{mark} {words}" for mark, words in MARKS)
            legend = f"{marks}   latencies in ms"
            return StateWords(progress_text(state), reason_text(state), wish_text(state), legend)


def _rate_legend(state: RateState) -> str:
    if not state.plan.limits:
        return "open loop: latency counts from when each I/O was due, whatever completes"
    return "lower UPPER ? class (RFC 9971)  [ ] bound of the answer  k/n trials kept it"
