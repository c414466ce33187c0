"""Points of sweeps, searches for a rate and isolation curves, with their figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from collectors.field import Field, Unit
from collectors.model import FrameTable, Rows, Tier
from collectors.subject import Subject
from engine.statistics.verdict import Better

_ENGINE = "the engine's clock"
_OF_TRIALS = "; the median of the trials"


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


def _subject(table: str, one: str, columns: str, *fields: tuple[str, str, Unit, str]) -> Subject:
    made = tuple(_field(table, *each) for each in fields)
    return Subject(table=table, title="point", one=one, fields=made, columns=tuple(columns.split()))


def _field(table: str, field_id: str, title: str, unit: Unit, help_text: str) -> Field:
    better = _BETTER.get(field_id)
    counts = field_id in _COUNTS
    return Field(field_id, title, help_text, unit, table, _ENGINE, tier=Tier.EXACT, better=better, counts=counts)


METRICS = {"mean_ms": "mean", "p50_ms": "p50", "p99_ms": "p99", "p999_ms": "p99.9"}
"""Names of latencies as limits have them, by field."""
_COUNTS = frozenset({"trials", "skipped", "queue_depth"})
_BETTER = {"isolation_p5": Better.HIGHER, "noise_pct": Better.LOWER}
_LATENCIES = (
    ("mean_ms", "mean", Unit.MILLISECONDS, f"Mean latency{_OF_TRIALS}."),
    ("p50_ms", "p50", Unit.MILLISECONDS, f"Latency that half of the I/Os do not exceed{_OF_TRIALS}."),
    ("p99_ms", "p99", Unit.MILLISECONDS, f"Latency that 99 % of the I/Os do not exceed{_OF_TRIALS}."),
    ("p999_ms", "p99.9", Unit.MILLISECONDS, f"Latency that 99.9 % of the I/Os do not exceed{_OF_TRIALS}."),
)
_IOPS = ("iops", "IOPS", Unit.PER_SECOND, f"I/Os completed per second{_OF_TRIALS}.")

SWEEP_POINTS = _subject(
    "sweep_points",
    "point of a sweep",
    "iops mean_ms p99_ms p999_ms noise_pct little_pct bytes_per_s in_flight p50_ms trials",
    _IOPS,
    ("bytes_per_s", "B/s", Unit.BYTES_PER_SECOND, f"Bytes per second{_OF_TRIALS}."),
    *_LATENCIES,
    ("in_flight", "Outst", Unit.COUNT, f"I/Os outstanding on average{_OF_TRIALS}."),
    ("little_pct", "Lit%", Unit.PERCENT, "How far I/Os outstanding are from IOPS x latency (Little's law), at most."),
    ("noise_pct", "+-%", Unit.PERCENT, "Half the width of the 95 % interval of IOPS, as a share of it."),
    ("trials", "n", Unit.COUNT, "Trials that the figures are medians of."),
)
RATE_POINTS = _subject(
    "rate_points",
    "rate",
    "iops mean_ms p99_ms p999_ms p50_ms trials",
    _IOPS,
    *_LATENCIES,
    ("trials", "n", Unit.COUNT, "Trials at this rate."),
)
ISOLATION_POINTS = _subject(
    "isolation_points",
    "point of an isolation curve",
    "queue_depth isolation_p5 p99_ms aggressor_iops iops mean_ms skipped",
    ("queue_depth", "QD", Unit.COUNT, "Queue depth of the aggressor."),
    ("isolation_p5", "iso p5", Unit.COUNT, "Latency alone / latency beside the aggressor, 5th percentile of seconds."),
    ("p99_ms", "p99", Unit.MILLISECONDS, "Response time of the victim that 99 % of its I/Os do not exceed."),
    ("aggressor_iops", "Its IOPS", Unit.PER_SECOND, "I/Os per second of the aggressor."),
    ("iops", "IOPS", Unit.PER_SECOND, "I/Os per second of the victim."),
    ("mean_ms", "mean", Unit.MILLISECONDS, "Mean response time of the victim."),
    ("skipped", "skipped", Unit.COUNT, "Arrivals of the victim that found no free slot in time."),
)
