"""What layouts and paths did: I/Os of every path, its failures, and logical I/Os over several targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from engine.backend.protocol import EpochStats
from engine.results.measured import Measured, Split, combine, combine_splits, logical_level, path_level, split_of


class PathOutcome(Struct, frozen=True):
    """One failure of one path; times are right to some 50 ms, which is how often the engine's counters are read."""

    target: str
    path: str
    failed_time_ns: int
    """CLOCK_REALTIME."""
    failed_s: float
    """Since the start of the load."""
    ios_retried: int
    """Attempts that failed on the path. Each was sent again over another path; where none was left the I/O failed, and
    is in the errors of the run as well."""
    returned_time_ns: int | None = None
    """None: the path did not answer again while the load ran."""
    returned_s: float | None = None

    @property
    def text(self) -> str:
        """The same for people, in local time."""
        ios = "1 I/O was" if self.ios_retried == 1 else f"{self.ios_retried:,} I/Os were"
        back = "it did not answer again"
        if self.returned_time_ns is not None and self.returned_s is not None:
            later_s = self.returned_s - self.failed_s
            back = f"it answered again at {_clock(self.returned_time_ns)}, {later_s:.1f} s later"
        return (
            f"path {self.path} of {self.target} failed at {_clock(self.failed_time_ns)}, {self.failed_s:.1f} s after "
            f"the start: {ios} sent again, {back}"
        )


def path_outcome_documents(outcomes: Iterable[PathOutcome]) -> list[dict[str, object]]:
    """Write the failures of paths as JSON, the first first."""
    return [
        {
            "target": one.target,
            "path": one.path,
            "failed_at": _iso(one.failed_time_ns),
            "failed_s": round(one.failed_s, 3),
            "ios_retried": one.ios_retried,
            "returned_at": None if one.returned_time_ns is None else _iso(one.returned_time_ns),
            "returned_s": None if one.returned_s is None else round(one.returned_s, 3),
        }
        for one in outcomes
    ]


def _iso(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 1e9, UTC).isoformat(timespec="milliseconds")


def _clock(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 1e9, UTC).astimezone().strftime("%H:%M:%S")


class PathResult(Struct, frozen=True, eq=False):
    """One path of a target in one epoch; errors are failed attempts, which another path may have made good."""

    name: str
    split: Split


class HoldUp(Struct, frozen=True):
    """What one target cost the logical I/Os that several targets shared."""

    target: str
    last_ios: int
    """Logical I/Os that ended with this target's part."""
    waited_ns: int
    """Sum of the times for which all their other parts had completed by then."""


class LogicalResult(Struct, frozen=True, eq=False):
    """I/Os as the job specifies them, each as slow as its slowest part, beside their parts."""

    split: Split
    parts: Measured
    hold_ups: tuple[HoldUp, ...]
    """One per target inside the stripe width."""

    @property
    def slowest(self) -> HoldUp | None:
        """The target for which the others waited longest; None if none waited."""
        slowest = max(self.hold_ups, key=lambda hold_up: hold_up.waited_ns, default=None)
        return slowest if slowest is not None and slowest.waited_ns else None

    def cost_pct(self, hold_up: HoldUp) -> float | None:
        """Return how much of their latency logical I/Os would save without a target's lag, in percent."""
        whole_ns = self.split.total.latency_sum_ns
        return 100 * hold_up.waited_ns / whole_ns if whole_ns else None

    def last_pct(self, hold_up: HoldUp) -> float | None:
        """Return the share of the logical I/Os of several parts that ended with a target, in percent."""
        shared = sum(one.last_ios for one in self.hold_ups)
        return 100 * hold_up.last_ios / shared if shared else None

    def amplification(self, percent: float) -> float | None:
        """Return the ratio of the latency of a logical I/O to that of a part, at one percentile; None with too few."""
        whole, part = self.split.total.percentile_ns(percent), self.parts.percentile_ns(percent)
        return whole / part if whole is not None and part else None

    @property
    def mean_amplification(self) -> float | None:
        """Return the mean latency of the logical I/Os in multiples of that of the parts."""
        whole, part = self.split.total.mean_ns, self.parts.mean_ns
        return whole / part if whole is not None and part else None


def path_results(stats: EpochStats, paths: Sequence[Sequence[str]]) -> tuple[tuple[PathResult, ...], ...]:
    """Read the paths of every target; `paths` has their names, none for a target with one path only."""
    level, results, row = path_level(stats), [], 0
    for names in paths:
        count = max(len(names), 1)
        rows = range(row, row + count) if len(level.counts) and names else range(0)
        results.append(
            tuple(PathResult(name, split_of(level, index)) for name, index in zip(names, rows, strict=False))
        )
        row += count
    return tuple(results)


def logical_result(stats: EpochStats, names: Sequence[str], parts: Measured) -> LogicalResult | None:
    """Read the logical I/Os of an epoch; None where none was cut or had copies."""
    split = split_of(logical_level(stats), None)
    if not split.total.ios and not split.total.errors:
        return None
    active = names[: stats.knobs.stripe_width]
    rows = zip(active, stats.delays.tolist(), strict=False)
    return LogicalResult(split, parts, tuple(HoldUp(name, last, waited) for name, (last, waited) in rows))


def combine_logical(parts: Sequence[LogicalResult]) -> LogicalResult | None:
    """Add up epochs; None where none had any."""
    if not parts:
        return None
    sums: dict[str, HoldUp] = {}
    for hold_up in (one for part in parts for one in part.hold_ups):
        before = sums.get(hold_up.target, HoldUp(hold_up.target, 0, 0))
        sums[hold_up.target] = HoldUp(
            hold_up.target, before.last_ios + hold_up.last_ios, before.waited_ns + hold_up.waited_ns
        )
    return LogicalResult(
        combine_splits([part.split for part in parts]), combine([part.parts for part in parts]), tuple(sums.values())
    )
