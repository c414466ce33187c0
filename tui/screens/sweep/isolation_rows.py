"""The points of an isolation curve as rows, and what the sweep screen says of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from collectors.tables.study.subjects import ISOLATION_POINTS, figure_of
from engine.isolation.study import IsolationPoint, IsolationStudy, point_name
from engine.job.sizes import format_number
from engine.text import safe_text
from tui.screens.sweep.study_words import StudyWords, fitting_text
from tui.sweep.state import RUNNING_PHASES, StudyState, SweepPhase

IsolationState: TypeAlias = StudyState[IsolationStudy, IsolationPoint, IsolationPoint]


class IsolationRow(Struct, frozen=True):
    """One point."""

    number: int
    point: IsolationPoint
    factors: tuple[float | None, ...]
    """Isolation factor of each second; None where it is not known."""
    low_factor: float | None
    """5th percentile of the factors."""
    is_isolated: bool = True
    """Whether the victim stays within its limit."""
    is_now: bool = False
    marks = ""

    @property
    def key(self) -> str:
        """What it is, while its figures change."""
        return str(self.number)

    @property
    def sentence(self) -> str:
        """Name in words of a sentence."""
        return point_name(self.point.aggressor, self.point.cap)

    @property
    def name(self) -> str:
        """The cap and the block size of the aggressor."""
        load = self.point.aggressor
        return "alone" if load is None else f"{self.point.cap.text} {load.block}"

    @property
    def words(self) -> str:
        """How many seconds are measured, while they are."""
        return f"now {len(self.point.seconds)} s" if self.is_now else "" if self.is_isolated else "not isolated"

    @property
    def rank(self) -> float:
        """1 for the point being measured, 2 for one that is not isolated."""
        return 1.0 if self.is_now else 0.0 if self.is_isolated else 2.0

    def cell(self, _field_id: str) -> None:
        """All cells are figures."""

    def figure(self, name: str) -> float | None:
        """Return a figure of the point; latencies in ms."""
        return figure_of(ISOLATION_POINTS, self, name)


def isolation_rows(state: IsolationState) -> list[IsolationRow]:
    """Make a row of each point, with the one being measured."""
    study, now = state.plan, state.points.measuring
    points = study.points if now is None or state.phase not in RUNNING_PHASES else (*study.points, now)
    done = len(study.points)
    return [_row(study, number, point, is_now=number >= done) for number, point in enumerate(points)]


def _row(study: IsolationStudy, number: int, point: IsolationPoint, *, is_now: bool) -> IsolationRow:
    baseline = study.baseline
    factors = () if baseline is None else tuple(baseline.factor(second) for second in point.seconds)
    low = study.factor(point)
    is_isolated = low is None or point.aggressor is None or low * study.within >= 1
    return IsolationRow(number, point, factors, low, is_isolated, is_now)


_PARTS = ("; the aggressor", " (", ", has ", " at every", "; ")
"""Texts at which a verdict can end: what follows is in the view answer."""


def isolation_words(state: IsolationState) -> StudyWords:
    """Say how far a curve is."""
    count, figure = len(state.plan.points), state.plan.figure.value
    legend = f"iso p5: {figure} alone / {figure} beside, 5th percentile of the seconds"
    done, waits = f"{count}/{state.expected} points", f"{state.expected} points"
    return StudyWords(done, f"{count} points", legend, waits, "the victim", made="were measured")


def isolation_verdict_text(state: IsolationState, width: int) -> str:
    """Say in one line which cap keeps the victim within its limit, shorter where it does not fit."""
    text = _verdict(state)
    parts = (text[: text.find(end)] for end in _PARTS if end in text)
    return text if len(text) <= width else next((part for part in parts if len(part) <= width), text)


def _verdict(state: IsolationState) -> str:
    study, baseline = state.plan, state.plan.baseline
    if state.phase is SweepPhase.ENDED:
        return study.answer if study.points else "nothing was measured"
    if baseline is None:
        return "measures the victim alone first"
    limit_ms = baseline.typical_ns * study.within / 1e6
    return (
        f"{study.figure} of the victim alone: {baseline.typical_ns / 1e6:.3f} ms; isolated up to {limit_ms:.3f} ms "
        f"({study.within:g} x)"
    )


def isolation_answer_text(state: IsolationState) -> Iterator[str]:
    """Write the answer and what it is made of."""
    study, baseline = state.plan, state.plan.baseline
    if not study.points:
        return
    yield study.answer if state.phase is SweepPhase.ENDED else "not over yet: the answer comes with the last point"
    yield f"  isolation: {study.figure} of the victim alone / beside the aggressor, each second; 1 is not affected"
    yield f"  p5: the 5th percentile of the seconds of a point; isolated from {1 / study.within:.2f} on"
    if baseline is not None:
        drift = study.drift
        again = "" if drift is None or len(study.points) < state.expected else f"; at the end {drift:.2f} x of that"
        alone = f"{baseline.typical_ns / 1e6:.3f} ms, {format_number(study.rate_iops)} IOPS"
        yield f"  the victim alone: {study.figure} {alone}{again}"
    yield from (f"  left out: {safe_text(name)}" for name in study.left_out)
    if study.ended:
        yield f"not complete: {safe_text(study.ended)}"


def isolation_point_text(row: IsolationRow, width: int) -> str:
    """Write the figures of a point, as many as fit, none of them cut."""
    parts = [row.sentence]
    for name, title, digits in (
        ("aggressor_iops", "aggressor {} IOPS", 0),
        ("iops", "victim {} IOPS", 0),
        ("mean_ms", "mean {} ms", 3),
        ("p99_ms", "p99 {} ms", 3),
        ("isolation_p5", "isolation p5 {}", 2),
    ):
        value = row.figure(name)
        parts += [] if value is None else [title.format(f"{value:,.{digits}f}")]
    return fitting_text(parts, width)
