"""An isolation curve as events of a session."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING

from msgspec import Struct

from engine.isolation.factor import FactorOf
from engine.isolation.kept_point import point_document, read_point
from engine.isolation.study import IsolationPoint, IsolationStudy, point_name
from engine.replacing import replace
from engine.strict_json import load_json
from engine.study.events import BEGIN, END, LEFT_OUT, Data, StudyEvents, StudyReading, from_json

if TYPE_CHECKING:
    from engine.isolation.plan import IsolationPlan

_KEY = "isolation"
_POINT = "point"
_MOST = 1 << 62
"""A number beyond any count or time that was measured."""
_MOST_POINTS = 100_000


class RecordedIsolation(Struct, frozen=True):
    """A recorded curve at one moment."""

    study: IsolationStudy
    expected: int
    """Points in all."""
    is_over: bool
    """Whether its end is among the events."""


def begin_event(plan: IsolationPlan, study: IsolationStudy) -> tuple[str, Data]:
    """Text and data of the start."""
    data: Data = {
        _KEY: BEGIN,
        "targets": json.dumps(study.targets),
        "rate": study.rate_iops,
        "figure": study.figure.value,
        "within": study.within,
        "points": plan.points,
    }
    return plan.words, data


def point_event(study: IsolationStudy, point: IsolationPoint) -> tuple[str, Data]:
    """Text and data of a point."""
    factor = study.factor(point)
    words = "" if factor is None else f": isolation {factor:.2f} (5th percentile)"
    data: Data = {_KEY: _POINT, "point": json.dumps(point_document(point), allow_nan=False)}
    return f"isolation: {point_name(point.aggressor, point.cap)}{words}", data


def left_out_event(name: str) -> tuple[str, Data]:
    """Text and data of a point that is not measured."""
    return f"isolation: {name}: skipped", {_KEY: LEFT_OUT, "name": name}


def end_event(study: IsolationStudy) -> tuple[str, Data]:
    """Text and data of the end."""
    return f"isolation: {study.ended or 'complete'}", {_KEY: END, "how": study.ended}


def _plan(data: Data) -> tuple[RecordedIsolation, int] | None:
    targets = from_json(tuple[str, ...], str(data.get("targets", "[]")))
    try:
        figure = FactorOf(str(data.get("figure")))
        rate, within, points = (float(data.get(key) or 0.0) for key in ("rate", "within", "points"))
    except ValueError:
        return None
    if targets is None or not rate > 0 or not 1 < within < _MOST or not 0 < points < _MOST_POINTS:
        return None
    return RecordedIsolation(IsolationStudy(targets, rate, figure, within, ()), int(points), is_over=False), 1


@functools.lru_cache(maxsize=1024)
def _point(text: str) -> IsolationPoint | None:
    """Read a point back; None where it is none."""
    try:
        return read_point(load_json(text))
    except ValueError:
        return None


def _found(reading: StudyReading[RecordedIsolation, IsolationPoint]) -> RecordedIsolation:
    begun, left_out = reading.plan, tuple(str(data.get("name", "")) for data in reading.left_out)
    study = replace(begun.study, points=tuple(reading.trials[0]), left_out=left_out, ended=reading.ended or "")
    return replace(begun, study=study, is_over=reading.ended is not None)


ISOLATION_EVENTS = StudyEvents(_KEY, _plan, _point, _found)
