"""What targets and devices did at the highest throughput of a curve: a lane for each, and the cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collectors.reports.documents.content import Block, DocumentTable
from collectors.reports.documents.json_values import figure
from collectors.reports.documents.run_devices import point_device_blocks
from engine.sweep.target_share import TargetShare, hottest_target
from engine.sweep.trial import Trial, best_trial

_BAR_CELLS = 20
_MOST_LANES = 32
_TARGETS = (
    ("target", ""),
    ("", ""),
    ("I/Os", "%"),
    ("IOPS", "1/s"),
    ("mean", "ms"),
    ("p99", "ms"),
    ("I/Os", ""),
    ("", ""),
)


def point_blocks(load: str, trials: Sequence[Trial]) -> Iterator[Block]:
    """Yield the lanes of a curve at its highest throughput; nothing of trials without them."""
    best = best_trial(trials)
    if best is None:
        return
    at = f" at {load}={best.load:g}" if load else ""
    if len(best.targets) > 1:
        rows = tuple(_target(share, best.targets) for share in best.targets[:_MOST_LANES])
        yield DocumentTable(f"Targets{at}", _TARGETS, rows, texts=2, note=hottest_words(best.targets))
    yield from point_device_blocks(best.devices or {}, at, tuple(share.name for share in best.targets))


def hottest_words(shares: Sequence[TargetShare]) -> str:
    """Say what the slowest target costs."""
    hottest = hottest_target(shares)
    if hottest is None:
        return "none is slower than its peers by 5 % or more"
    return f"without the lag of {hottest.target.name} the mean latency would be {hottest.cost_pct:.0f} % lower"


def _target(share: TargetShare, shares: Sequence[TargetShare]) -> tuple[str, ...]:
    part, hottest = share.ios / max(sum(each.ios for each in shares), 1), hottest_target(shares)
    cost = f"costs {hottest.cost_pct:.0f} %" if hottest is not None and hottest.target is share else ""
    p99 = "-" if share.p99_ns is None else figure(share.p99_ns / 1e6, 3)
    figures = (figure(100 * part), figure(share.iops), figure(share.latency_ns / 1e6, 3), p99, figure(share.ios))
    return (share.name, "#" * round(_BAR_CELLS * part), *figures, cost)
