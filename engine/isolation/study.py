"""What was measured of a victim and an aggressor, as a table, words and JSON."""

from __future__ import annotations

from msgspec import Struct

from engine.isolation.caps import NO_CAP, Cap
from engine.isolation.factor import LOW_PERCENT, Baseline, FactorOf, baseline_of
from engine.isolation.victim import VictimSecond, pooled_p99_ns
from engine.study.runner import COMPLETE
from engine.sweep.document import Document
from engine.sweep.presets.outcome import SCHEMA, table_document
from engine.sweep.presets.table import Cell, StudyColumn, StudyRow, StudyTable
from engine.version import version

NAME = "isolation"
TITLE = "a load at a fixed rate (--rate) beside another one x queue depth, without and with limits (--cap) on the other"
SOURCE = "as the benchmark isolation of resctl-bench; no figures are published"
_COLUMNS = (
    StudyColumn("aggressor_queue_depth", "aggressor QD"),
    StudyColumn("aggressor_block", "block"),
    StudyColumn("cap", "cap"),
    StudyColumn("aggressor_iops", "its IOPS"),
    StudyColumn("victim_iops", "victim IOPS"),
    StudyColumn("victim_skipped", "skipped"),
    StudyColumn("victim_mean_ms", "mean ms", 3),
    StudyColumn("victim_p99_ms", "p99 ms", 3),
    StudyColumn("isolation_factor_p5", "isolation p5", 2),
)


class AggressorLoad(Struct, frozen=True):
    """What the aggressor does at one point."""

    queue_depth: int
    block: str

    @property
    def text(self) -> str:
        """The answer in words of a sentence."""
        return f"QD {self.queue_depth}, {self.block}"


class IsolationPoint(Struct, frozen=True):
    """The victim at one point; alone where there is no aggressor."""

    aggressor: AggressorLoad | None
    cap: Cap
    aggressor_iops: float | None
    seconds: tuple[VictimSecond, ...]

    @property
    def queue_depth(self) -> float | None:
        """Queue depth of the aggressor; None without one."""
        return None if self.aggressor is None else float(self.aggressor.queue_depth)

    @property
    def iops(self) -> float | None:
        """I/Os per second of the victim; None while nothing was measured."""
        time_s = sum(second.duration_s for second in self.seconds)
        return self._ios / time_s if time_s else None

    @property
    def skipped(self) -> float | None:
        """Arrivals of the victim that found no free slot in time; None while nothing was measured."""
        return float(sum(second.skipped for second in self.seconds)) if self.seconds else None

    @property
    def mean_ms(self) -> float | None:
        """Mean response time of the victim; None without I/Os."""
        return _ms(sum(second.latency_sum_ns for second in self.seconds) / self._ios) if self._ios else None

    @property
    def p99_ms(self) -> float | None:
        """Response time that 99 % of the I/Os of the victim do not exceed; None with too few of them."""
        return _ms(pooled_p99_ns(self.seconds))

    @property
    def _ios(self) -> int:
        return sum(second.ios for second in self.seconds)


def point_name(load: AggressorLoad | None, cap: Cap) -> str:
    """Name a point in words of a sentence."""
    return "the victim alone" if load is None else f"beside {load.text}, cap {cap.text}"


class IsolationStudy(Struct, frozen=True):
    """All points in the order they were measured."""

    targets: tuple[str, ...]
    rate_iops: float
    figure: FactorOf
    within: float
    """How many times its response time alone the victim may have."""
    points: tuple[IsolationPoint, ...]
    ended: str = ""
    """Why it ended before its last point; empty where it did not, or goes on."""
    left_out: tuple[str, ...] = ()
    """Names of points that were skipped."""
    expected: int = 0
    """Points in all."""

    @property
    def how_ended(self) -> str:
        """How it ended, once it is over."""
        return self.ended or (f"{len(self.left_out)} skipped" if self.left_out else COMPLETE)

    @property
    def is_complete(self) -> bool:
        """Whether no point is missing, once it is over."""
        return not self.ended and not self.left_out

    @property
    def baseline(self) -> Baseline | None:
        """The victim alone, before anything else."""
        alone = self._alone
        return baseline_of(alone[0].seconds, self.figure) if alone else None

    @property
    def _alone(self) -> list[IsolationPoint]:
        return [point for point in self.points if point.aggressor is None]

    @property
    def drift(self) -> float | None:
        """Response time alone at the end as a multiple of that at the start; None if one is not known."""
        first, last = self.baseline, baseline_of(self._alone[-1].seconds, self.figure) if self._alone[1:] else None
        return None if first is None or last is None or not first.typical_ns else last.typical_ns / first.typical_ns

    def factor(self, point: IsolationPoint) -> float | None:
        """5th percentile of the isolation factor of a point; None if it is not known."""
        baseline = self.baseline
        return None if baseline is None else baseline.low_factor(point.seconds)

    @property
    def table(self) -> StudyTable:
        """A row of each point."""
        factor = f"{self.figure} of the victim alone / beside the aggressor"
        title = f"isolation: {factor}, {LOW_PERCENT:g}th percentile of the seconds"
        return StudyTable(title, _COLUMNS, tuple(StudyRow(self._cells(point)) for point in self.points))

    def _cells(self, point: IsolationPoint) -> tuple[Cell, ...]:
        other = point.aggressor
        load: tuple[Cell, ...] = ("alone", "-", "-", None)
        if other is not None:
            load = (point.queue_depth, other.block, point.cap.text, point.aggressor_iops)
        return (*load, point.iops, point.skipped, point.mean_ms, point.p99_ms, self.factor(point))

    @property
    def answer(self) -> str:
        """Which cap keeps the victim within its limit, in one line; or why the data do not say it."""
        reason = self._reason_not_to_say()
        if reason:
            return f"not said which cap isolates: {reason}"
        worst = {cap: self._worst(cap) for cap in dict.fromkeys(point.cap for point in self._beside)}
        keeping = [cap for cap, (factor, _) in worst.items() if factor * self.within >= 1]
        limit = f"within {self.within:g} x of its {self.figure} alone"
        if NO_CAP in keeping:
            factor, load = worst[NO_CAP]
            return f"no cap is needed up to {load.text}: the victim stays {limit} (isolation {factor:.2f} at worst)"
        if keeping:
            best = max(keeping, key=self._most_iops)
            factor, load = worst[best]
            return (
                f"{best.text} keeps the victim {limit} at every load measured (isolation {factor:.2f} at worst, at "
                f"{load.text}); the aggressor has {self._most_iops(best):,.0f} IOPS then, "
                f"{self._most_iops(NO_CAP):,.0f} without a cap"
            )
        best = max(worst, key=lambda cap: worst[cap][0])
        factor, load = worst[best]
        return f"no cap measured keeps the victim {limit}; the best, {best.text}, has {factor:.2f} at {load.text}"

    @property
    def _beside(self) -> list[IsolationPoint]:
        return [point for point in self.points if point.aggressor is not None]

    def _worst(self, cap: Cap) -> tuple[float, AggressorLoad]:
        found = [
            (factor, point.aggressor)
            for point in self._beside
            if point.cap == cap and point.aggressor is not None and (factor := self.factor(point)) is not None
        ]
        return min(found, key=lambda pair: pair[0])

    def _most_iops(self, cap: Cap) -> float:
        return max((point.aggressor_iops or 0.0 for point in self._beside if point.cap == cap), default=0.0)

    def _reason_not_to_say(self) -> str:
        if not self.is_complete:
            return "points are missing"
        if self.baseline is None:
            return f"too few I/Os for the {self.figure} of the victim alone: raise --rate, or --runtime"
        if any(self.factor(point) is None for point in self._beside):
            return "too few seconds with enough I/Os beside the aggressor: raise --rate, or --runtime"
        drift = self.drift
        if drift is None or max(drift, 1 / drift) > self.within:
            times = "is not known" if drift is None else f"was {drift:.2f} x of that at the start"
            return f"the {self.figure} of the victim alone at the end {times}: repeat it on a quiet device"
        return ""


def study_document(study: IsolationStudy) -> Document:
    """Everything that was measured, ready for json.dumps; the keys of other presets with those of the seconds."""
    return {
        "schema": SCHEMA,
        "version": version(),
        "preset": NAME,
        "title": TITLE,
        "targets": list(study.targets),
        "complete": study.is_complete,
        "remarks": [f"left out: {name}" for name in study.left_out],
        "tables": [table_document(study.table)],
        "published_elsewhere": {"source": SOURCE, "facts": []},
        "parts": [],
        "isolation": {
            "rate_iops": study.rate_iops,
            "factor_of": study.figure.value,
            "within": study.within,
            "baseline_ms": None if study.baseline is None else study.baseline.typical_ns / 1e6,
            "baseline_drift": study.drift,
            "answer": study.answer,
            "ended": study.ended,
            "points": [_point_document(study, point) for point in study.points],
            "left_out": list(study.left_out),
        },
    }


def _point_document(study: IsolationStudy, point: IsolationPoint) -> Document:
    baseline, other = study.baseline, point.aggressor
    return {
        "aggressor": None if other is None else {"queue_depth": other.queue_depth, "block": other.block},
        "cap": {"reads_per_s": point.cap.reads_per_s, "bytes_per_s": point.cap.bytes_per_s},
        "aggressor_iops": point.aggressor_iops,
        "isolation_factor_p5": study.factor(point),
        "seconds": [_second_document(baseline, second) for second in point.seconds],
    }


def _second_document(baseline: Baseline | None, second: VictimSecond) -> Document:
    return {
        "duration_s": second.duration_s,
        "ios": second.ios,
        "skipped": second.skipped,
        "mean_ms": _ms(second.mean_ns),
        "p99_ms": _ms(second.p99_ns),
        "isolation_factor": None if baseline is None else baseline.factor(second),
    }


def _ms(time_ns: float | None) -> float | None:
    return None if time_ns is None else time_ns / 1e6
