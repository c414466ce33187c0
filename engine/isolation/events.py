"""An isolation curve as events of a session; and all studies of a recording up to any moment, in their order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, TypeAlias

from msgspec import Meta, Struct

from engine.events import Event
from engine.isolation.factor import FactorOf
from engine.isolation.kept_point import POINTS
from engine.isolation.study import IsolationPoint, IsolationStudy, point_name
from engine.rate_search.events import RATE_EVENTS, RecordedRates
from engine.replacing import replace
from engine.study.events import Data, RecordedStudy, StudyEvents, from_json, recorded_studies
from engine.study.points import LeftOut
from engine.sweep.events import SWEEP_EVENTS, RecordedSweep

if TYPE_CHECKING:
    from engine.isolation.plan import IsolationPlan

_Rate = Annotated[float, Meta(gt=0, lt=1 << 62)]
_Times = Annotated[float, Meta(gt=1, lt=1 << 62)]
_Points = Annotated[float, Meta(gt=0, lt=100_000)]


class RecordedIsolation(RecordedStudy[IsolationStudy, IsolationPoint], frozen=True):
    """A recorded curve at one moment."""

    @property
    def study(self) -> IsolationStudy:
        """What was measured up to then."""
        points, left_out = self.points.trials[0], tuple(str(each.point) for each in self.points.left_out)
        return replace(self.plan, points=points, left_out=left_out, ended=self.ended or "")


class _IsolationBegin(Struct, frozen=True):
    targets: str
    """Names, as JSON."""
    rate: _Rate
    figure: FactorOf
    within: _Times
    points: _Points
    """How many there are in all."""


def begin_event(plan: IsolationPlan, study: IsolationStudy) -> tuple[str, Data]:
    """Text and data of the start."""
    begin = _IsolationBegin(json.dumps(study.targets), study.rate_iops, study.figure, study.within, plan.points)
    return plan.words, ISOLATION_EVENTS.begin_data(begin)


def point_event(study: IsolationStudy, point: IsolationPoint) -> tuple[str, Data]:
    """Text and data of a point."""
    factor = study.factor(point)
    words = "" if factor is None else f": isolation {factor:.2f} (5th percentile)"
    return f"isolation: {point_name(point.aggressor, point.cap)}{words}", ISOLATION_EVENTS.trial_data(0, point)


def left_out_event(name: str) -> tuple[str, Data]:
    """Text and data of a point that is not measured."""
    return f"isolation: {name}: skipped", ISOLATION_EVENTS.left_out_data(name=name)


def end_event(study: IsolationStudy) -> tuple[str, Data]:
    """Text and data of the end."""
    return f"isolation: {study.ended or 'complete'}", ISOLATION_EVENTS.end_data(study.ended)


def _plan(begin: _IsolationBegin) -> tuple[IsolationStudy, int]:
    targets = from_json(tuple[str, ...], begin.targets)
    if targets is None:
        raise ValueError("no targets")
    return IsolationStudy(targets, begin.rate, begin.figure, begin.within, (), expected=int(begin.points)), 1


def _left_out(data: Data) -> LeftOut:
    return LeftOut(str(data.get("name", "")))


ISOLATION_EVENTS = StudyEvents("isolation", "point", POINTS, _IsolationBegin, _plan, RecordedIsolation, _left_out)


RecordedMeasurement: TypeAlias = RecordedSweep | RecordedRates | RecordedIsolation


def recorded_measurements(events: Iterable[Event]) -> list[RecordedMeasurement]:
    """Read all that began among these events; without those that this version cannot read."""
    found: list[RecordedMeasurement] = recorded_studies(events, (SWEEP_EVENTS, RATE_EVENTS, ISOLATION_EVENTS))
    return found
