"""The open loop of a sweep, from the key `open_loop` of its document: its points, alone or beside the closed curve."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from msgspec import Struct

from collectors.reports.documents.content import (
    Block,
    Charts,
    DocumentTable,
    DrawnAxis,
    DrawnChart,
    DrawnCurve,
    Form,
    Mark,
    Paragraph,
)
from collectors.reports.documents.json_values import Values, figure, number, part, parts, text_of, texts
from engine.errors import UsageError
from engine.sweep.limit import Limit

_MAXIMUM = "maximum"
"""Stage of the trials that overload it on purpose."""
_LATENCIES = (("mean", "mean"), ("p50", "p50"), ("p99", "p99"), ("p99.9", "p99_9"))
_LIMITED = (*_LATENCIES, ("p90", "p90"), ("max", "max"))
_WIDE = 20
"""Range of latencies from which an axis is logarithmic."""


class OpenPoint(Struct, frozen=True):
    """All trials at one rate: medians; NaN where a figure is not known."""

    rate: float
    iops: float
    latencies_ms: dict[str, float]
    count: int
    carried: int
    """Trials in which as many I/Os completed as arrived."""
    skipped: float


class OpenCurve(Struct, frozen=True):
    """One combination of knobs."""

    name: str
    points: tuple[OpenPoint, ...]
    answers: tuple[Values, ...]
    """Answers for each limit, as in the document."""


def read_open_loop(sweep: Values) -> tuple[OpenCurve, ...]:
    """Read the open loop of a document; empty where it has none, or nothing of it was measured."""
    searches = parts(part(sweep, "open_loop"), "searches")
    curves = (OpenCurve(_name(each), _points(each), tuple(parts(each, "limits"))) for each in searches)
    return tuple(curve for curve in curves if curve.points)


def _name(search: Values) -> str:
    name = search.get("name")
    return name if isinstance(name, str) else ""


def _points(search: Values) -> tuple[OpenPoint, ...]:
    by_rate: dict[float, list[Values]] = {}
    for trial in parts(search, "trials"):
        rate, iops = number(trial, "rate"), number(trial, "iops")
        if 0 < rate < math.inf and 0 <= iops < math.inf and trial.get("stage") != _MAXIMUM:
            by_rate.setdefault(rate, []).append(trial)
    return tuple(_point(rate, trials) for rate, trials in sorted(by_rate.items()))


def _point(rate: float, trials: Sequence[Values]) -> OpenPoint:
    return OpenPoint(
        rate,
        statistics.median(number(trial, "iops") for trial in trials),
        {name: _median_ms(trials, key) for name, key in _LIMITED},
        len(trials),
        sum(trial.get("sustained") is True for trial in trials),
        sum(value for trial in trials if math.isfinite(value := number(trial, "skipped"))),
    )


def _median_ms(trials: Sequence[Values], key: str) -> float:
    found = [number(part(trial, "latency_us"), key) / 1000 for trial in trials]
    known = [value for value in found if 0 <= value < math.inf]
    return statistics.median(known) if known else math.nan


def open_curves(open_points: Sequence[OpenPoint]) -> Iterator[DrawnCurve]:
    """Yield the mean latency of an open loop over its throughput, to be drawn beside that of the closed one."""
    known = [point for point in open_points if point.iops > 0]
    if known:
        iops = tuple(point.iops for point in known)
        mean = tuple(point.latencies_ms["mean"] for point in known)
        yield DrawnCurve("mean latency, open loop", iops, mean, Form.OPEN_POINTS)


def open_blocks(curve: OpenCurve, *, with_chart: bool) -> Iterator[Block]:
    """Yield the rates of an open loop with what they gave, and with a chart where no closed curve has one."""
    for answer in curve.answers:
        yield Paragraph(_answer(answer), important=True)
    if len(curve.points) > 1:
        charts = [chart for answer in curve.answers for chart in _limited_chart(answer, curve.points)]
        if with_chart:
            drawn = tuple(open_curves(curve.points))
            charts.append(DrawnChart("Latency against throughput", "ms", drawn, DrawnAxis.LOG, "IOPS"))
        if charts:
            yield Charts(tuple(charts), "Curves")
    head = (("rate", "1/s"), ("IOPS", "1/s"), *((name, "ms") for name, _ in _LATENCIES), ("n", ""), ("", ""))
    yield DocumentTable("Open loop", head, tuple(map(_row, curve.points)), note=_NOTE)


def _limited_chart(answer: Values, points: Sequence[OpenPoint]) -> Iterator[DrawnChart]:
    """Draw what is limited over the rate, with the limit and its bounds."""
    try:
        limit = Limit.parse(text_of(answer.get("limit")))
    except UsageError:
        return
    known = [point for point in points if math.isfinite(point.latencies_ms[limit.metric])]
    if not known:
        return
    rates = tuple(point.rate for point in points)
    values, limit_ms = tuple(point.latencies_ms[limit.metric] for point in known), limit.limit_ns / 1e6
    curves = (
        DrawnCurve(limit.metric, tuple(point.rate for point in known), values, Form.POINTS),
        DrawnCurve(f"limit {limit.text}", (rates[0], rates[-1]), (limit_ms, limit_ms)),
    )
    bounds = ((key, number(part(answer, key), "rate")) for key in ("lower", "upper"))
    marks = tuple(Mark(rate, _BOUNDS[key], f"{_BOUNDS[key]}: {figure(rate)} IOPS") for key, rate in bounds if rate > 0)
    is_wide = max(*values, limit_ms) > _WIDE * max(min(*values, limit_ms), 1e-9)
    title = f"{limit.metric} over the rate, with the limit {limit.text}"
    yield DrawnChart(title, "ms", curves, DrawnAxis.LOG, "I/Os per second", marks, log_y=is_wide)


_BOUNDS = {"lower": "keeps it", "upper": "exceeds it"}
_NOTE = "I/Os arrive at the rate whatever completes, and latency counts from then; medians of n trials"


def _row(point: OpenPoint) -> tuple[str, ...]:
    latencies = (figure(point.latencies_ms[name], 3) for name, _ in _LATENCIES)
    notes = [] if point.carried == point.count else ["not carried"]
    notes += [f"{figure(point.skipped)} arrivals skipped"] if point.skipped else []
    return (figure(point.rate), figure(point.iops), *latencies, str(point.count), ", ".join(notes))


def _answer(answer: Values) -> str:
    """Repeat what the document says, with what speaks against it; documents of earlier versions have bounds only."""
    words = answer.get("text")
    return (
        ". Caution: ".join((words if isinstance(words, str) else _of_bounds(answer), *texts(answer, "cautions"))) + "."
    )


def _of_bounds(answer: Values) -> str:
    lower, upper = (figure(number(part(answer, bound), "rate")) for bound in ("lower", "upper"))
    limit = text_of(answer.get("limit"))
    match answer.get("verdict"):
        case "found":
            return f"{limit}: {lower} IOPS keep it, {upper} exceed it"
        case "none_keeps":
            return f"{limit}: no rate keeps it: not even {upper} IOPS does"
        case "all_keep":
            return f"{limit}: even the highest rate keeps it, {lower} IOPS"
        case _:
            return f"{limit}: undecided: lower bound {lower} IOPS, upper bound {upper}"
