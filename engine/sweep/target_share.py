"""What each target did in one measurement, and what the slowest one cost."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from engine.results.result import EpochResult
from engine.study.decoded import Count, Figure

_LEAST_COST_PCT = 5.0
"""A target that costs less than this is not named: latencies of equal disks differ by as much."""


class TargetShare(Struct, frozen=True, forbid_unknown_fields=True):
    """One target in one epoch."""

    name: str
    ios: Count
    iops: Figure
    latency_ns: Figure
    """Mean."""
    p99_ns: Figure | None = None
    """None with too few I/Os."""
    waited_pct: Figure | None = None
    """Share of the latency of logical I/Os that is waiting for this target alone; None where no I/O spans targets."""


class HottestTarget(Struct, frozen=True):
    """The target that is slower than its peers."""

    target: TargetShare
    cost_pct: float
    """Share of the mean latency of all I/Os that its lag causes."""


def target_shares(epoch: EpochResult) -> tuple[TargetShare, ...]:
    """Read the targets inside the stripe width."""
    logical = epoch.logical
    hold_ups = {} if logical is None else {each.target: logical.cost_pct(each) for each in logical.hold_ups}
    shares = []
    for target in epoch.targets:
        total = target.split.total
        rate = total.ios / epoch.duration_s if epoch.duration_s else 0.0
        p99_ns = total.percentile_ns(99.0)
        p99 = None if p99_ns is None else float(p99_ns)
        shares.append(TargetShare(target.name, total.ios, rate, total.mean_ns or 0.0, p99, hold_ups.get(target.name)))
    return tuple(shares)


def hottest_target(shares: Sequence[TargetShare]) -> HottestTarget | None:
    """Find the target that costs at least 5 % of the mean latency; None among equals.

    Where I/Os span several targets the cost is the time for which their other parts had completed. Where each I/O has
    one target it is the difference between the mean of all I/Os and the mean of those to the other targets.
    """
    ios = sum(share.ios for share in shares)
    if len(shares) < 2 or not ios:
        return None
    hottest = max(shares, key=lambda share: (share.waited_pct or 0.0, share.latency_ns))
    cost_pct = hottest.waited_pct
    if cost_pct is None:
        mean_ns = sum(share.ios * share.latency_ns for share in shares) / ios
        others = [share for share in shares if share is not hottest and share.ios]
        rest = sum(share.ios for share in others)
        rest_ns = sum(share.ios * share.latency_ns for share in others) / rest if rest else mean_ns
        cost_pct = 100 * (1 - rest_ns / mean_ns) if mean_ns else 0.0
    return HottestTarget(hottest, cost_pct) if cost_pct >= _LEAST_COST_PCT else None
