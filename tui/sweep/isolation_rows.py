"""The points of an isolation curve as rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from engine.isolation.caps import Cap
from engine.isolation.study import IsolationPoint, IsolationStudy, point_name
from engine.isolation.victim import pooled_p99_ns
from tui.sweep.isolation_state import IsolationState


class IsolationRow(Struct, frozen=True):
    """One point."""

    number: int
    point: IsolationPoint
    factors: tuple[float | None, ...]
    """Isolation factor of each second; None where it is not known."""
    low_factor: float | None
    """5th percentile of the factors."""
    is_now: bool = False

    @property
    def name(self) -> str:
        """In words of a sentence."""
        return point_name(self.point.aggressor, self.point.cap)

    def figure(self, name: str) -> float | None:
        """Return a figure of the point; latencies in ms."""
        return _FIGURES[name](self)


def _time_s(row: IsolationRow) -> float:
    return sum(second.duration_s for second in row.point.seconds)


def _ios(row: IsolationRow) -> int:
    return sum(second.ios for second in row.point.seconds)


def _depth(row: IsolationRow) -> float | None:
    return None if row.point.aggressor is None else float(row.point.aggressor.queue_depth)


def _iops(row: IsolationRow) -> float | None:
    time_s = _time_s(row)
    return _ios(row) / time_s if time_s else None


def _skipped(row: IsolationRow) -> float | None:
    return float(sum(second.skipped for second in row.point.seconds)) if row.point.seconds else None


def _mean(row: IsolationRow) -> float | None:
    ios = _ios(row)
    return sum(second.latency_sum_ns for second in row.point.seconds) / ios / 1e6 if ios else None


def _p99(row: IsolationRow) -> float | None:
    time_ns = pooled_p99_ns(row.point.seconds)
    return None if time_ns is None else time_ns / 1e6


_FIGURES: Mapping[str, Callable[[IsolationRow], float | None]] = {
    "number": lambda row: float(row.number),
    "qd": _depth,
    "other": lambda row: row.point.aggressor_iops,
    "iops": _iops,
    "skipped": _skipped,
    "mean": _mean,
    "p99": _p99,
    "factor": lambda row: row.low_factor,
}
ISOLATION_SORT_KEYS = ("number", "qd", "other", "iops", "mean", "p99", "factor")
"""What the rows can be sorted by."""


def isolation_rows(state: IsolationState) -> list[IsolationRow]:
    """Make a row of each point, with the one being measured."""
    done = len(state.study.points)
    return [_row(state.study, number, point, is_now=number >= done) for number, point in enumerate(state.points)]


def _row(study: IsolationStudy, number: int, point: IsolationPoint, *, is_now: bool) -> IsolationRow:
    baseline = study.baseline
    factors = () if baseline is None else tuple(baseline.factor(second) for second in point.seconds)
    return IsolationRow(number, point, factors, study.factor(point), is_now)


def sorted_isolation_rows(rows: Sequence[IsolationRow], key: str, *, descending: bool) -> list[IsolationRow]:
    """Sort; rows without the figure come last."""
    known = [(value, row) for row in rows if (value := row.figure(key)) is not None]
    known.sort(key=lambda each: (-each[0] if descending else each[0], each[1].number))
    return [row for _, row in known] + [row for row in rows if row.figure(key) is None]


def caps_of(rows: Sequence[IsolationRow]) -> tuple[Cap, ...]:
    """List the caps beside which the victim was measured, in their order."""
    return tuple(dict.fromkeys(row.point.cap for row in rows if row.point.aggressor is not None))
