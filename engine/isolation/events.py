"""An isolation curve as events of a session: written as it goes on, read back up to any moment of a recording."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from msgspec import Struct

from engine._native import HISTOGRAM_BUCKETS
from engine.errors import UsageError
from engine.events import Event
from engine.isolation.caps import parse_cap
from engine.isolation.factor import FactorOf
from engine.isolation.study import AggressorLoad, IsolationPoint, IsolationStudy, point_name
from engine.isolation.victim import VictimSecond
from engine.replacing import replace
from engine.strict_json import load_json
from engine.text import safe_text, short_text

if TYPE_CHECKING:
    from engine.isolation.plan import IsolationPlan

Data: TypeAlias = Mapping[str, str | float | None]
_KEY = "isolation"
_BEGIN, _POINT, _LEFT_OUT, _END = "begin", "point", "left out", "end"
_MOST = 1 << 62
"""Beyond any count or time that was measured."""
_MOST_POINTS = 100_000
_DEEPEST = 1_000_000
_LONGEST_BLOCK = 40


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
        _KEY: _BEGIN,
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
    return f"isolation: {name}: skipped", {_KEY: _LEFT_OUT, "name": name}


def end_event(study: IsolationStudy) -> tuple[str, Data]:
    """Text and data of the end."""
    return f"isolation: {study.ended or 'complete'}", {_KEY: _END, "how": study.ended}


def is_isolation_begin(event: Event) -> bool:
    """Whether a curve begins with this event."""
    return event.data.get(_KEY) == _BEGIN


def recorded_isolation(events: Iterable[Event]) -> RecordedIsolation | None:
    """Read the last curve that began among these events; None without one, or one that this version cannot read."""
    found: RecordedIsolation | None = None
    for event in events:
        data = event.data
        match data.get(_KEY):
            case "begin":
                found = _begun(data)
            case "point" if found is not None:
                point = _point(str(data.get("point")))
                if point is not None:
                    found = replace(found, study=replace(found.study, points=(*found.study.points, point)))
            case "left out" if found is not None:
                names = (*found.study.left_out, str(data.get("name", "")))
                found = replace(found, study=replace(found.study, left_out=names))
            case "end" if found is not None:
                found = replace(found, study=replace(found.study, ended=str(data.get("how", ""))), is_over=True)
    return found


def _begun(data: Data) -> RecordedIsolation | None:
    try:
        targets = load_json(str(data.get("targets", "[]")))
        figure = FactorOf(str(data.get("figure")))
        rate, within, points = (float(data.get(key) or 0.0) for key in ("rate", "within", "points"))
    except (ValueError, TypeError):
        return None
    if not isinstance(targets, list) or not rate > 0 or not 1 < within < _MOST or not 0 < points < _MOST_POINTS:
        return None
    study = IsolationStudy(tuple(map(str, targets)), rate, figure, within, ())
    return RecordedIsolation(study, int(points), is_over=False)


def point_document(point: IsolationPoint) -> Mapping[str, Any]:
    """Write a point as a JSON object that `read_point` reads back."""
    load = point.aggressor
    return {
        "load": None if load is None else [load.queue_depth, load.block],
        "cap": point.cap.text,
        "iops": point.aggressor_iops,
        "seconds": [
            [each.duration_s, each.ios, each.skipped, each.latency_sum_ns, each.buckets.tolist(), each.counts.tolist()]
            for each in point.seconds
        ],
    }


@functools.lru_cache(maxsize=1024)
def _point(text: str) -> IsolationPoint | None:
    """Read a point back; None where it is none."""
    try:
        return read_point(load_json(text))
    except ValueError:
        return None


def read_point(document: Any) -> IsolationPoint | None:  # noqa: ANN401 (of a file)
    """Read a point back from its object; None where it is none."""
    try:
        load, iops = document["load"], document["iops"]
        aggressor = None if load is None else _load(*load)
        seconds = tuple(map(_second, document["seconds"]))
        return IsolationPoint(aggressor, parse_cap(str(document["cap"])), _figure(iops), seconds)
    except (UsageError, ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError):
        return None


def _load(depth: object, block: object) -> AggressorLoad:
    if not 1 <= _number(depth) <= _DEEPEST:
        raise ValueError("no queue depth")
    return AggressorLoad(int(_number(depth)), safe_text(short_text(str(block), _LONGEST_BLOCK)))


def _figure(value: object) -> float | None:
    return None if value is None else _number(value)


def _second(values: Any) -> VictimSecond:  # noqa: ANN401 (of a file)
    duration_s, ios, skipped, latency_ns, buckets, counts = values
    if not len(buckets) == len(counts) or not all(0 <= bucket < HISTOGRAM_BUCKETS for bucket in buckets):
        raise ValueError("no histogram")
    if any(later <= earlier for earlier, later in itertools.pairwise(buckets)):
        raise ValueError("no histogram")
    whole = [int(_number(count)) for count in counts]
    return VictimSecond(
        _number(duration_s),
        int(_number(ios)),
        int(_number(skipped)),
        int(_number(latency_ns)),
        np.array(buckets, np.uint16),
        np.array(whole, np.uint64),
    )


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
        raise ValueError("no figure")
    return value
