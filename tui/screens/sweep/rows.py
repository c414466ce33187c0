"""The points of a sweep as rows: their values, state, figures, and the marks of the optima."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from collectors.tables.study.subjects import SWEEP_POINTS, figure_of
from engine.sweep.knee import Answer
from engine.sweep.optimum import Optimum
from engine.sweep.plan import SweepPlan
from engine.sweep.points import Point
from engine.sweep.repeats import Repeats
from engine.sweep.text import PointSummary
from engine.sweep.trial import Trial
from tui.sweep.state import StudyState

SweepState: TypeAlias = StudyState[SweepPlan, Point, Trial]
BALANCE, WITHIN, HIGHEST = "B", "L", "H"
"""Marks of the optima: best balance, best within a limit, highest throughput."""


class PointState(StrEnum):
    """What became of a point."""

    MEASURED = "measured"
    MEASURING = "measuring"
    WAITING = "waiting"
    SKIPPED = "skipped"
    FAILED = "failed"


class PointRow(Struct, frozen=True):
    """One point."""

    point: Point
    name: str
    """Such as "stripe_width=2 qd=16"."""
    state: PointState
    reason: str = ""
    """Why it failed."""
    summary: PointSummary | None = None
    """None while nothing was measured."""
    optima: str = ""
    """Marks of the optima that are here."""
    figures: Mapping[str, float | None] = {}
    """Figures by field; empty while nothing was measured."""
    is_in_interval: bool = False
    """Whether it lies in the 95 % interval of the best balance, or else of the highest throughput."""

    @property
    def key(self) -> str:
        """What it is, while its figures change."""
        return f"{self.point.curve}:{self.point.load}"

    @property
    def marks(self) -> str:
        """Marks of the interval and of the optima."""
        return f"{'|' if self.is_in_interval else ' '}{self.optima:<3} "

    @property
    def rank(self) -> float:
        """1 for the point being measured, 2 for one that failed."""
        return _RANKS.get(self.state, 0.0)

    def cell(self, _field_id: str) -> None:
        """All cells are figures."""

    @property
    def words(self) -> str:
        """State, and what makes the figures less than they seem."""
        notes = "" if self.summary is None else self.summary.notes
        if self.state is PointState.FAILED:
            return f"failed: {self.reason}"
        if self.state is PointState.MEASURED:
            return notes
        again = " again" if self.summary is not None and self.state is PointState.MEASURING else ""
        return f"{self.state.value}{again}" + (f", {notes}" if notes else "")

    def figure(self, name: str) -> float | None:
        """Return a figure by its field, or a latency in ms by the name that limits have for it."""
        if self.summary is None or name in self.figures:
            return self.figures.get(name)
        return self.summary.latency_ms(name)


_RANKS = {PointState.MEASURING: 1.0, PointState.FAILED: 2.0}
_NO_FIGURES: Mapping[str, float | None] = {}


def point_rows(state: SweepState, answers: Sequence[Answer | None]) -> list[PointRow]:
    """List all points, curve by curve, with rising load."""
    return [row for index in range(len(state.plan.curves)) for row in _curve_rows(state, index, answers[index])]


def _curve_rows(state: SweepState, index: int, answer: Answer | None) -> Iterator[PointRow]:
    curve, points = state.plan.curves[index], state.points
    summaries = _summaries(points.trials[index])
    left_out = {each.point.load: each.reason for each in points.left_out if each.point.curve == index}
    now = points.measuring.load if points.measuring is not None and points.measuring.curve == index else None
    measured = sorted(summaries)
    loads = sorted({*curve.search.loads, *measured, *left_out, *(() if now is None else (now,))})
    marks = {} if answer is None else _marks(answer, measured)
    low, high = interval(answer)
    for load, name in zip(loads, state.plan.point_names(index, loads), strict=True):
        summary, figures = summaries.get(load, (None, _NO_FIGURES))
        if load == now:
            became = PointState.MEASURING
        elif summary is not None:
            became = PointState.MEASURED
        elif load in left_out:
            became = PointState.FAILED if left_out[load] else PointState.SKIPPED
        else:
            became = PointState.WAITING
        inside, reason = summary is not None and low <= load <= high, left_out.get(load, "")
        yield PointRow(Point(index, load), name, became, reason, summary, marks.get(load, ""), figures, inside)


@functools.lru_cache(maxsize=2048)
def _summaries(trials: tuple[Trial, ...]) -> dict[int, tuple[PointSummary, Mapping[str, float | None]]]:
    by_load: dict[int, list[Trial]] = {}
    for trial in trials:
        by_load.setdefault(round(trial.load) if trial.load else 1, []).append(trial)
    repeats = Repeats.of(trials)
    found = ((load, PointSummary.of(load, of_load, repeats)) for load, of_load in by_load.items())
    return {load: (summary, _figures(summary)) for load, summary in found}


def _figures(summary: PointSummary) -> Mapping[str, float | None]:
    return {field.id: figure_of(SWEEP_POINTS, summary, field.id) for field in SWEEP_POINTS.fields}


def optima(answer: Answer | None) -> Iterator[tuple[str, Optimum]]:
    """List the optima of a curve with their marks."""
    if answer is None:
        return
    found = [(BALANCE, answer.balance), *((WITHIN, each) for _, each in answer.within), (HIGHEST, answer.highest)]
    yield from ((mark, each) for mark, each in found if each is not None)


def interval(answer: Answer | None) -> tuple[float, float]:
    """Return the marked interval: that of the best balance, else of the highest throughput; empty without both."""
    best = None if answer is None else answer.balance or answer.highest
    return (1.0, 0.0) if best is None else (best.low, best.high)


def _marks(answer: Answer, measured: Sequence[int]) -> dict[int, str]:
    """Put each mark on the measured load that is nearest."""
    marks: dict[int, str] = {}
    for mark, optimum in optima(answer):
        if measured:
            nearest = min(measured, key=lambda load: abs(load - optimum.at.load))
            if mark not in marks.get(nearest, ""):
                marks[nearest] = marks.get(nearest, "") + mark
    return marks
