"""The points of an isolation curve as rows."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from collectors.tables.study.subjects import ISOLATION_POINTS, figure_of
from engine.isolation.study import IsolationPoint, IsolationStudy, point_name
from tui.sweep.state import RUNNING_PHASES, StudyState

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
