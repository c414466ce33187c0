"""What the sweep screen says of a search for rates."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from engine.rate_search.answer import RateVerdict
from engine.rate_search.search import is_carried
from engine.rate_search.text import answer_lines, maximum_line, rate_text
from engine.replacing import replace
from engine.text import safe_text
from tui.screens.sweep.rate_rows import CurveFigures, RateRow, RateState
from tui.screens.sweep.study_words import StudyWords, fitting_text
from tui.sweep.state import SweepPhase


def rate_words(state: RateState) -> StudyWords:
    """Say how far a search is."""
    legend = "lower UPPER ? class (RFC 9971)  [ ] bound of the answer  k/n trials kept it"
    if not state.plan.limits:
        legend = "open loop: latency counts from when each I/O was due, whatever completes"
    count, is_late = f"{state.points.done} trials", state.left_s is not None and state.left_s < 1
    words = StudyWords(count, count, legend, state.plan.words, "the open loop", in_hand="trial")
    return replace(words, is_late=is_late)


def rate_verdict_text(state: RateState, curve: int, figures: CurveFigures, width: int) -> str:
    """Say in one line which rate keeps all limits."""
    name = state.plan.curves[curve][0]
    lead = f"[{name}] " if name else ""
    answers = figures.answers.limits
    if not state.plan.limits:
        return lead + _carried_text(figures)
    if figures.grid is None:
        return f"{lead}finding the maximum of the load first"
    none = next((each for each in answers if each.verdict is RateVerdict.NONE_KEEPS and each.upper), None)
    if none is not None and none.upper is not None:
        others = [each.lower.rate for each in answers if each.lower is not None]
        are_known = others and len(others) == len(answers) - 1
        rest = f"; the others: use rate={rate_text(min(others))}/s" if are_known else ""
        return f"{lead}no rate keeps {none.limit.text}: not even {rate_text(none.upper.rate)}/s{rest}"
    best, tightest = figures.best, figures.tightest
    if best is None:
        open_ = next(each.limit.text for each in answers if each.lower is None)
        return f"{lead}no rate is known yet to keep {open_}"
    done = all(each.verdict in {RateVerdict.FOUND, RateVerdict.ALL_KEEP} for each in answers)
    what = "use" if done else "so far"
    keep = "keeps" if len(answers) == 1 else "keeps all limits,"
    why = tightest.limit.text if len(answers) == 1 else f"{tightest.limit.text} is the tightest"
    text = f"{lead}{what} rate={rate_text(best)}/s: {keep} {why}"
    upper = tightest.upper
    beyond = f"; {rate_text(upper.rate)} exceeds it" if upper is not None else "; the highest tried"
    return text + beyond if len(text + beyond) <= width else text


def _carried_text(figures: CurveFigures) -> str:
    """Say up to which rate the device kept up; without limits that is the answer."""
    measured = [row for row in figures.rows if row.trials]
    if not measured:
        return "no rate was measured yet"
    carried = list(itertools.takewhile(lambda row: all(map(is_carried, row.trials)), measured))
    text = f"rate={rate_text(carried[-1].point.rate)}/s is carried" if carried else "no rate is carried"
    beyond = measured[len(carried) :]
    return f"{text}; {rate_text(beyond[0].point.rate)}/s is not" if beyond else text


def rate_answer_text(state: RateState, found: Sequence[CurveFigures], first: int) -> Iterator[str]:
    """Write the answers of all combinations, the chosen one first, then what went wrong."""
    for index in (first, *(each for each in range(len(found)) if each != first)):
        name, depth = state.plan.curves[index][0], state.plan.curves[index][1].queue_depth
        if name:
            yield f"[{name}]"
        if state.plan.limits:
            yield maximum_line(found[index].answers, state.points.trials[index], depth)
        else:
            yield _carried_text(found[index])
        for answer in found[index].answers.limits:
            yield from answer_lines(answer, found[index].answers, is_ended=state.phase is SweepPhase.ENDED)
    for note in state.notes:
        yield f"note: {safe_text(note)}"
    if state.phase is SweepPhase.ENDED and not state.is_complete:
        yield f"not complete: {safe_text(state.ended)}"


def rate_point_text(state: RateState, row: RateRow, width: int) -> str:
    """Write the figures of a rate, as many as fit, none of them cut."""
    parts = [state.plan.point_name(row.point)]
    iops = row.figure("iops")
    parts += [] if iops is None else [f"{iops:,.0f} IOPS"]
    for limit, found in zip(state.plan.limits, row.classes, strict=False):
        parts.append(f"{limit.text}: {found.found}, kept in {found.kept} of {found.trials}")
    for metric in ("p50", "mean", "p99", "p99.9"):
        value = row.figure(metric)
        parts += [] if value is None else [f"{metric} {value:.3f} ms"]
    return fitting_text(parts, width)
