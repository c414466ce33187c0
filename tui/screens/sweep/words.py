"""What the sweep screen says: progress, the verdict in one line, the answer in full, the point under the cursor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collectors.field import Unit
from engine.sweep.knee import Answer, Shape
from engine.sweep.target_share import hottest_target
from engine.sweep.text import answer_lines, shape_words
from engine.text import safe_text
from tui.screens.sweep.rows import BALANCE, HIGHEST, WITHIN, PointRow, SweepState, interval
from tui.screens.sweep.study_words import StudyWords, fitting_text
from tui.sweep.state import SweepPhase
from tui.text.format import format_quantity

NO_SWEEP = "no sweep here: lunscope sweep --vary qd=1..64, or a recording of one, shows it"
STUDY_POINTS = "points of a study: its tables are in the view answer"
MARKS = ((BALANCE, "best balance"), (WITHIN, "best within the limit"), (HIGHEST, "highest throughput"))


def curve_words(state: SweepState) -> StudyWords:
    """Say how far a sweep is."""
    count, marks = state.points.done, "  ".join(f"{mark} {words}" for mark, words in MARKS)
    done = f"{count}/{state.expected} measured"
    return StudyWords(done, f"{count} measurements", f"{marks}   latencies in ms", state.plan.words)


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
