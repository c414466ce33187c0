"""Points of sweeps, searches for a rate and isolation curves, with their figures."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Protocol, TypeAlias

import numpy as np

from collectors.field import Field, Unit
from collectors.model import FrameTable, Rows, Tier
from collectors.subject import Subject
from engine.rate_search.trial import RateTrial
from engine.statistics.verdict import Better
from engine.sweep.text import PointSummary
from engine.sweep.trial import Trial

_ENGINE = "the engine's clock"
_OF_TRIALS = "; the median of the trials"
_LITTLE = "How far I/Os outstanding are from IOPS x latency (Little's law), at most."
_OF_SECONDS = ", 5th percentile of seconds"
_Reader: TypeAlias = Callable[[Any], float | None]
_Figure: TypeAlias = tuple[str, str, Unit, str, str | _Reader]
"""Id, title, unit and help of a field, and the attribute of what was measured that it is, or what computes it."""


class MeasuredPoint(Protocol):
    """A point with its figures."""

    @property
    def key(self) -> str:
        """What it is, while its figures change."""

    @property
    def name(self) -> str:
        """What it is called."""

    def figure(self, name: str) -> float | None:
        """Return a figure by the id of its field; None where it is not known."""


def table_of(subject: Subject, rows: Sequence[MeasuredPoint]) -> FrameTable:
    """Make the frame table of points."""
    columns = {
        field.id: np.array([np.nan if (value := row.figure(field.id)) is None else value for row in rows], np.float64)
        for field in subject.fields
    }
    return FrameTable(Rows(tuple(row.key for row in rows), tuple(row.name for row in rows)), columns)


class PointField(Field, frozen=True, kw_only=True):
    """A figure of points, and how it follows from what was measured of one."""

    of: _Reader


def figure_of(subject: Subject, measured: object, field_id: str) -> float | None:
    """Return a figure of what was measured of a point; None where it is not known, or the subject has no such field."""
    of = _readers(subject.table).get(field_id)
    return None if of is None else of(measured)


@functools.cache
def _readers(table: str) -> Mapping[str, _Reader]:
    fields = next(each for each in (SWEEP_POINTS, RATE_POINTS, ISOLATION_POINTS) if each.table == table).fields
    return {field.id: field.of for field in fields if isinstance(field, PointField)}


def _subject(table: str, one: str, columns: str, *figures: _Figure) -> Subject:
    fields = tuple(_field(table, *each) for each in figures)
    return Subject(table=table, title="point", one=one, fields=fields, columns=tuple(columns.split()))


def _field(table: str, field_id: str, title: str, unit: Unit, *rest: str | _Reader) -> Field:
    help_text, of = rest
    better, counts = _BETTER.get(field_id), field_id in _COUNTS
    read = attrgetter(of) if isinstance(of, str) else of
    about = str(help_text)
    return PointField(field_id, title, about, unit, table, _ENGINE, Tier.EXACT, better=better, counts=counts, of=read)


def rate_latency_ms(trials: Sequence[RateTrial], metric: str) -> float | None:
    """Return the median over the trials of a rate in which a latency is known, by the name that limits have for it."""
    known = [trial.latencies_ns[metric] for trial in trials if metric in trial.latencies_ns]
    return statistics.median(known) / 1e6 if known else None


def _rate_iops(trials: Sequence[RateTrial]) -> float | None:
    return statistics.median(trial.iops for trial in trials) if trials else None


def _median(field: str) -> Callable[[PointSummary], float]:
    of: Callable[[Trial], float] = attrgetter(field)
    return lambda point: statistics.median(map(of, point.trials))


def _count(trials: Sequence[RateTrial]) -> float:
    return float(len(trials))


def _noise_pct(point: PointSummary) -> float:
    return 100 * point.spread


def _little_pct(point: PointSummary) -> float | None:
    """Take the trial in which it is largest."""
    known = [trial.little for trial in point.trials if trial.little is not None]
    return 100 * max(known, key=abs) if known else None


_COUNTS = frozenset({"trials", "skipped", "queue_depth"})
_BETTER = {"isolation_p5": Better.HIGHER, "noise_pct": Better.LOWER}


def _at(of: Callable[[Any, str], float | None], metric: str) -> _Reader:
    return lambda found: of(found, metric)


def _latencies(of: Callable[[Any, str], float | None]) -> Iterator[_Figure]:
    for field_id, metric, text in (
        ("mean_ms", "mean", "Mean latency"),
        ("p50_ms", "p50", "Latency that half of the I/Os do not exceed"),
        ("p99_ms", "p99", "Latency that 99 % of the I/Os do not exceed"),
        ("p999_ms", "p99.9", "Latency that 99.9 % of the I/Os do not exceed"),
    ):
        yield field_id, metric, _MS, f"{text}{_OF_TRIALS}.", _at(of, metric)


_PER_S, _MS, _SHARE, _N = Unit.PER_SECOND, Unit.MILLISECONDS, Unit.PERCENT, Unit.COUNT
SWEEP_POINTS = _subject(
    "sweep_points",
    "point of a sweep",
    "iops mean_ms p99_ms p999_ms noise_pct little_pct bytes_per_s in_flight p50_ms trials",
    ("iops", "IOPS", _PER_S, f"I/Os completed per second{_OF_TRIALS}.", "iops"),
    ("bytes_per_s", "B/s", Unit.BYTES_PER_SECOND, f"Bytes per second{_OF_TRIALS}.", _median("bytes_per_s")),
    *_latencies(PointSummary.latency_ms),
    ("in_flight", "Outst", _N, f"I/Os outstanding on average{_OF_TRIALS}.", _median("in_flight")),
    (
        "little_pct",
        "Lit%",
        _SHARE,
        _LITTLE,
        _little_pct,
    ),
    ("noise_pct", "+-%", _SHARE, "Half the width of the 95 % interval of IOPS, as a share of it.", _noise_pct),
    ("trials", "n", _N, "Trials that the figures are medians of.", lambda point: _count(point.trials)),
)
RATE_POINTS = _subject(
    "rate_points",
    "rate",
    "iops mean_ms p99_ms p999_ms p50_ms trials",
    ("iops", "IOPS", _PER_S, f"I/Os completed per second{_OF_TRIALS}.", _rate_iops),
    *_latencies(rate_latency_ms),
    ("trials", "n", _N, "Trials at this rate.", _count),
)
ISOLATION_POINTS = _subject(
    "isolation_points",
    "point of an isolation curve",
    "queue_depth isolation_p5 p99_ms aggressor_iops iops mean_ms skipped",
    ("queue_depth", "QD", _N, "Queue depth of the aggressor.", "point.queue_depth"),
    ("isolation_p5", "iso p5", _N, f"Latency alone / latency beside the aggressor{_OF_SECONDS}.", "low_factor"),
    ("p99_ms", "p99", _MS, "Response time of the victim that 99 % of its I/Os do not exceed.", "point.p99_ms"),
    ("aggressor_iops", "Its IOPS", _PER_S, "I/Os per second of the aggressor.", "point.aggressor_iops"),
    ("iops", "IOPS", _PER_S, "I/Os per second of the victim.", "point.iops"),
    ("mean_ms", "mean", _MS, "Mean response time of the victim.", "point.mean_ms"),
    ("skipped", "skipped", _N, "Arrivals of the victim that found no free slot in time.", "point.skipped"),
)
