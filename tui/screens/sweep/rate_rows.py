"""The rates of a search as rows: figures, the class of each for each limit, and the bounds so far."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

from collectors.tables.study.subjects import RATE_POINTS, figure_of, rate_latency_ms
from engine.rate_search.answer import RateAnswer, RateAnswers, rate_answers
from engine.rate_search.bounds import LoadClass, classify
from engine.rate_search.grid import RateGrid
from engine.rate_search.plan import RatePlan, RatePoint
from engine.rate_search.rounds import on_grid
from engine.rate_search.search import RateSearch, is_carried
from engine.rate_search.trial import RateStage, RateTrial
from engine.sweep.limit import Limit
from tui.sweep.state import StudyState

RateState: TypeAlias = StudyState[RatePlan, RatePoint, RateTrial]
_TRYING = "trying"
CLASS_WORDS = {LoadClass.LOWER: "lower", LoadClass.UPPER: "UPPER", LoadClass.UNDECIDED: "?"}


class LimitClass(Struct, frozen=True):
    """What is known of a rate for one limit."""

    found: LoadClass
    kept: int
    """Trials that kept the limit."""
    trials: int
    is_bound: bool = False
    """Whether it is one of the relevant bounds: the answer lies between them."""


class RateRow(Struct, frozen=True):
    """One rate."""

    point: RatePoint
    trials: tuple[RateTrial, ...]
    classes: tuple[LimitClass, ...] = ()
    """Classes by limit; empty on the way to the maximum."""
    words: str = ""
    marks = ""

    @property
    def key(self) -> str:
        """What it is, while its figures change."""
        return f"{self.point.curve}:{self.point.rate!r}"

    @property
    def name(self) -> str:
        """The rate per second."""
        return f"{self.point.rate:,.0f}"

    @property
    def rank(self) -> float:
        """1 for the rate that is tried, 2 where targets failed."""
        is_now = self.words.startswith(_TRYING)
        return 1.0 if is_now else 2.0 if any(trial.failing for trial in self.trials) else 0.0

    def cell(self, field_id: str) -> tuple[str, float] | None:
        """Class of the rate for a limit, by its number."""
        if not self.classes:
            return "", math.nan
        found = self.classes[int(field_id)]
        word = CLASS_WORDS[found.found]
        text = f"[{word}]" if found.is_bound else f" {word} "
        return f"{text:<8}{found.kept}/{found.trials}", found.kept / max(found.trials, 1)

    def figure(self, name: str) -> float | None:
        """Return IOPS or the number of trials, or a latency in ms by its field or its name in limits; medians."""
        found = figure_of(RATE_POINTS, self.trials, name)
        return rate_latency_ms(self.trials, name) if found is None else found


class CurveFigures(Struct, frozen=True):
    """Everything that the trials of one combination say."""

    answers: RateAnswers
    grid: RateGrid | None
    """None while the maximum of the load is not known."""
    rows: tuple[RateRow, ...]
    """Rows with rising rate."""
    passing: tuple[tuple[float | None, float | None], ...] = ()
    """Bounds by limit as the pass that the search is in has them: they may still move."""

    @property
    def best(self) -> float | None:
        """The highest rate that keeps all limits; None while it is not known for each."""
        lowers = [None if each.lower is None else each.lower.rate for each in self.answers.limits]
        known = [each for each in lowers if each is not None]
        return min(known) if known and len(known) == len(lowers) else None

    @property
    def tightest(self) -> RateAnswer:
        """The limit that the highest rate depends on."""
        return min(self.answers.limits, key=lambda each: math.inf if each.lower is None else each.lower.rate)


def curve_figures(state: RateState, curve: int) -> CurveFigures:
    """Evaluate one combination, with the rate that is being tried."""
    found = _figures(state.plan.search, curve, state.points.trials[curve])
    now = state.points.measuring
    if now is None or now.curve != curve:
        return found
    rows = {row.point: row for row in found.rows}
    here = rows.get(now)
    again = "" if here is None else " again"
    rest = "" if here is None or not here.words else f", {here.words}"
    words = f"{_TRYING}{again}{rest}"
    rows[now] = RateRow(now, here.trials if here else (), here.classes if here else (), words)
    return CurveFigures(found.answers, found.grid, tuple(rows[point] for point in sorted(rows)), found.passing)


@functools.lru_cache(maxsize=256)
def _figures(search: RateSearch, curve: int, trials: tuple[RateTrial, ...]) -> CurveFigures:
    answers, grid = rate_answers(search, trials), search.grid(trials)
    if not search.limits:
        return CurveFigures(answers, None, tuple(_step_rows(curve, trials)))
    if grid is None:
        return CurveFigures(answers, None, tuple(_maximum_rows(curve, trials)))
    phase = search.phases[-1]
    rows = []
    for rate, group in sorted(on_grid(trials).items()):
        classes = tuple(
            LimitClass(
                classify(group, answer.limit, phase, search.goal.exceed_ratio),
                sum(trial.keeps(answer.limit) for trial in group),
                len(group),
                rate in _bounds(answer),
            )
            for answer in answers.limits
        )
        rows.append(RateRow(RatePoint(curve, rate), tuple(group), classes, _words(group)))
    passing = tuple(_passing(search, grid, trials, answer.limit) for answer in answers.limits)
    return CurveFigures(answers, grid, tuple(rows), passing)


def _step_rows(curve: int, trials: Sequence[RateTrial]) -> Iterator[RateRow]:
    """Rates that were measured without a limit."""
    for rate, group in sorted(on_grid(trials).items()):
        yield RateRow(RatePoint(curve, rate), tuple(group), (), _words(group))


def _passing(
    search: RateSearch, grid: RateGrid, trials: Sequence[RateTrial], limit: Limit
) -> tuple[float | None, float | None]:
    """Find the bounds of the last pass that has any."""
    groups = on_grid(trials)
    for phase in reversed(search.phases):
        found = search.bounds(groups, grid, limit, phase)
        if found.lower is not None or found.upper is not None:
            lower, upper = (None if index is None else grid.rate(index) for index in (found.lower, found.upper))
            return lower, upper
    return None, None


def _bounds(answer: RateAnswer) -> tuple[float, ...]:
    return tuple(bound.rate for bound in (answer.lower, answer.upper) if bound is not None)


def _maximum_rows(curve: int, trials: Sequence[RateTrial]) -> Iterator[RateRow]:
    by_rate: dict[float, list[RateTrial]] = {}
    for trial in trials:
        if trial.stage == RateStage.MAXIMUM:
            by_rate.setdefault(trial.rate, []).append(trial)
    for rate, group in sorted(by_rate.items()):
        words = "carried" if any(map(is_carried, group)) else "not carried"
        yield RateRow(RatePoint(curve, rate), tuple(group), (), words)


def _words(trials: Sequence[RateTrial]) -> str:
    skipped, failing = sum(trial.skipped for trial in trials), {name for trial in trials for name in trial.failing}
    notes = [f"{name} fails" for name in sorted(failing)]
    notes += [f"{skipped:,} skipped"] if skipped else []
    notes += ["backlog grows"] if not all(trial.is_sustained for trial in trials) else []
    return ", ".join(notes)
