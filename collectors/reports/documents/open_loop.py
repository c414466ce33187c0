"""The open loop of a sweep, from the key `open_loop` of its document: its points, alone or beside the closed curve."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from collectors.reports.documents.content import (
    Block,
    Bullets,
    Charts,
    DocumentTable,
    DrawnAxis,
    DrawnChart,
    DrawnCurve,
    Form,
    Mark,
    Paragraph,
)
from collectors.reports.documents.json_values import Values, figure, part, parts
from engine.errors import UsageError
from engine.rate_search.answer import RateBound
from engine.rate_search.text import bound_lines, maximum_words, rate_text, undecided_line
from engine.rate_search.trial import RateStage
from engine.replacing import replace
from engine.study.decoded import Count, Figure, Positive, decoded
from engine.sweep.limit import Limit

_LATENCIES = ("mean", "p50", "p99", "p99.9")
_WIDE = 20
"""Range of latencies from which an axis is logarithmic."""


class OpenTrial(Struct, frozen=True):
    """One trial, as far as reports show it."""

    rate: Positive
    iops: Figure
    latency_us: Mapping[str, Figure | None] = field(default_factory=dict)
    stage: str = ""
    sustained: bool = False
    """Whether as many I/Os completed as arrived."""
    skipped: Figure = 0.0
    limits: tuple[LimitKept, ...] = ()
    failing: tuple[str, ...] = ()


class LimitKept(Struct, frozen=True):
    """Whether a trial kept a limit."""

    limit: str
    kept: bool


class Bound(Struct, frozen=True):
    """What was seen at the rate on one side of a limit; documents of earlier versions have the rate alone."""

    rate: Positive
    kept: Count = 0
    exceeded: Count = 0
    exceeded_s: Figure = 0.0
    ios: Count = 0
    over: Count | None = None
    latency_us: Figure | None = None

    @property
    def found(self) -> RateBound:
        """The same as it was found."""
        latency_ns = None if self.latency_us is None else 1000 * self.latency_us
        return RateBound(self.rate, self.kept, self.exceeded, self.exceeded_s, self.ios, self.over, latency_ns)


class LimitAnswer(Struct, frozen=True):
    """What is known of one limit."""

    limit: str
    verdict: str = ""
    text: str = ""
    """Empty in documents of earlier versions."""
    cautions: tuple[str, ...] = ()
    conditional_throughput: Figure | None = None
    lower: Bound | None = None
    upper: Bound | None = None
    undecided: tuple[Figure, ...] = ()


class OpenCurve(Struct, frozen=True):
    """One combination of knobs, as in the document; the trials of the stage that overloads it are left out."""

    name: str = ""
    queue_depth: Count | None = None
    maximum_iops: Positive | None = None
    maximum_is_capped: bool = False
    trial_count: Count = 0
    measured_s: Figure = 0.0
    arrival: str = ""
    answers: tuple[LimitAnswer, ...] = ()
    points: tuple[OpenPoint, ...] = ()


class OpenPoint(Struct, frozen=True):
    """The trials that count at one rate: medians; NaN where a figure is not known."""

    rate: float
    trials: tuple[OpenTrial, ...]

    @property
    def iops(self) -> float:
        """Median of what completed."""
        return statistics.median(trial.iops for trial in self.trials)

    def latency_ms(self, metric: str) -> float:
        """Median over the trials in which it is known."""
        key = metric.replace(".", "_")
        known = [value / 1000 for trial in self.trials if (value := trial.latency_us.get(key)) is not None]
        return statistics.median(known) if known else math.nan

    @property
    def notes(self) -> str:
        """What makes the figures less than they seem."""
        skipped = sum(trial.skipped for trial in self.trials)
        notes = [] if all(trial.sustained for trial in self.trials) else ["not carried"]
        notes += [f"{figure(skipped)} arrivals skipped"] if skipped else []
        notes += [f"{name} fails" for name in sorted({name for trial in self.trials for name in trial.failing})]
        return ", ".join(notes)

    def kept(self, limit: str) -> str:
        """Say in how many of the trials a limit was kept."""
        found = [each.kept for trial in self.trials for each in trial.limits if each.limit == limit]
        return f"{sum(found)} of {len(found)}" if found else "-"


def read_open_loop(sweep: Values) -> tuple[OpenCurve, ...]:
    """Read the open loop of a document; empty where it has none, or nothing of it was measured."""
    loop = part(sweep, "open_loop")
    curves = (_curve(each, loop) for each in parts(loop, "searches"))
    return tuple(curve for curve in curves if curve.points or curve.trial_count)


def _curve(search: Values, loop: Values) -> OpenCurve:
    """Read one search; what is damaged in it is left out."""
    answers = (decoded(LimitAnswer, each) for each in parts(search, "limits"))
    arrival = loop.get("arrival")
    others = {name: value for name, value in search.items() if name in OpenCurve.__struct_fields__}
    curve = decoded(OpenCurve, {**others, "arrival": arrival if isinstance(arrival, str) else ""}) or OpenCurve()
    return replace(curve, answers=tuple(each for each in answers if each is not None), points=_points(search))


def _points(search: Values) -> tuple[OpenPoint, ...]:
    """Group trials by rate; where a rate was measured again its newest round counts."""
    by_rate: dict[float, list[OpenTrial]] = {}
    for each in parts(search, "trials"):
        trial = decoded(OpenTrial, each)
        if trial is None or trial.stage == RateStage.MAXIMUM:
            continue
        if trial.stage == RateStage.AGAIN:
            by_rate.pop(trial.rate, None)
        by_rate.setdefault(trial.rate, []).append(trial)
    return tuple(OpenPoint(rate, tuple(trials)) for rate, trials in sorted(by_rate.items()))


def open_curves(open_points: Sequence[OpenPoint]) -> Iterator[DrawnCurve]:
    """Yield the mean latency of an open loop over its throughput, to be drawn beside that of the closed one."""
    known = [point for point in open_points if point.iops > 0]
    if known:
        iops = tuple(point.iops for point in known)
        mean = tuple(point.latency_ms("mean") for point in known)
        yield DrawnCurve("mean latency, open loop", iops, mean, Form.OPEN_POINTS)


def open_answers(curve: OpenCurve) -> Iterator[Block]:
    """Yield what is known of each limit, with what it rests on."""
    for answer in curve.answers:
        yield Paragraph(_answer(answer), important=True)
        if lines := tuple(_evidence(answer)):
            yield Bullets(lines)
    if curve.answers and curve.queue_depth is not None:
        trials = f"{curve.trial_count} trials, {curve.measured_s:.0f} s"
        yield Paragraph(maximum_words(curve.maximum_iops, curve.queue_depth, trials, capped=curve.maximum_is_capped))


def open_figures(curve: OpenCurve, *, with_chart: bool) -> Iterator[Block]:
    """Yield the rates of an open loop with what they gave, and with a chart where no closed curve has one."""
    if len(curve.points) > 1:
        charts = [chart for answer in curve.answers for chart in _limited_chart(answer, curve.points)]
        if with_chart:
            drawn = tuple(open_curves(curve.points))
            charts.append(DrawnChart("Latency against throughput", "ms", drawn, DrawnAxis.LOG, "IOPS"))
        if charts:
            yield Charts(tuple(charts), "Curves")
    if curve.points:
        yield _grid(curve)


def _limited_chart(answer: LimitAnswer, points: Sequence[OpenPoint]) -> Iterator[DrawnChart]:
    """Draw what is limited over the rate, with the limit and its bounds."""
    limit = _limit(answer)
    known = [] if limit is None else [point for point in points if math.isfinite(point.latency_ms(limit.metric))]
    if limit is None or not known:
        return
    rates = tuple(point.rate for point in points)
    values, limit_ms = tuple(point.latency_ms(limit.metric) for point in known), limit.limit_ns / 1e6
    curves = (
        DrawnCurve(limit.metric, tuple(point.rate for point in known), values, Form.POINTS),
        DrawnCurve(f"limit {limit.text}", (rates[0], rates[-1]), (limit_ms, limit_ms)),
    )
    bounds = ((answer.lower, "keeps it"), (answer.upper, "exceeds it"))
    marks = tuple(Mark(bound.rate, name, f"{name}: {figure(bound.rate)} IOPS") for bound, name in bounds if bound)
    is_wide = max(*values, limit_ms) > _WIDE * max(min(*values, limit_ms), 1e-9)
    title = f"{limit.metric} over the rate, with the limit {limit.text}"
    yield DrawnChart(title, "ms", curves, DrawnAxis.LOG, "I/Os per second", marks, log_y=is_wide)


def _limit(answer: LimitAnswer) -> Limit | None:
    try:
        return Limit.parse(answer.limit)
    except UsageError:
        return None


def _grid(curve: OpenCurve) -> DocumentTable:
    limits = tuple(answer.limit for answer in curve.answers)
    figures = (("IOPS", "1/s"), *((name, "ms") for name in _LATENCIES), ("n", ""))
    head = (("rate", "1/s"), *figures, *((limit, "kept in") for limit in limits), ("", ""))
    rows = tuple(_row(point, limits) for point in curve.points)
    arrivals = f"I/Os arrive ({curve.arrival})" if curve.arrival else "I/Os arrive"
    note = f"{arrivals} at the rate whatever completes, and latency counts from then; medians of n trials"
    return DocumentTable("Rates", head, rows, note=note)


def _row(point: OpenPoint, limits: Sequence[str]) -> tuple[str, ...]:
    latencies = (figure(point.latency_ms(name), 3) for name in _LATENCIES)
    figures = (rate_text(point.rate), figure(point.iops), *latencies, str(len(point.trials)))
    return (*figures, *map(point.kept, limits), point.notes)


def _answer(answer: LimitAnswer) -> str:
    """Repeat what the document says, with what speaks against it; documents of earlier versions have bounds only."""
    return ". Caution: ".join((answer.text or _of_bounds(answer), *answer.cautions)) + "."


def _evidence(answer: LimitAnswer) -> Iterator[str]:
    limit, bounds = _limit(answer), (answer.lower, answer.upper)
    if limit is not None and answer.text:
        lower, upper = (None if bound is None else bound.found for bound in bounds)
        yield from bound_lines(limit, answer.conditional_throughput, lower, upper)
        if answer.undecided:
            yield undecided_line(answer.undecided)


def _of_bounds(answer: LimitAnswer) -> str:
    lower, upper = (figure(math.nan if bound is None else bound.rate) for bound in (answer.lower, answer.upper))
    limit = answer.limit
    match answer.verdict:
        case "found":
            return f"{limit}: {lower} IOPS keep it, {upper} exceed it"
        case "none_keeps":
            return f"{limit}: no rate keeps it: not even {upper} IOPS does"
        case "all_keep":
            return f"{limit}: even the highest rate keeps it, {lower} IOPS"
        case _:
            return f"{limit}: undecided: lower bound {lower} IOPS, upper bound {upper}"
