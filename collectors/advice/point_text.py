"""Text of what targets and devices did at the highest throughput of each curve: a lane for each, and the cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from collectors.advice.figures import DeviceFigures
from collectors.advice.of_sweep import best_trial
from collectors.advice.point_devices import point_figures
from collectors.model import Tier
from collectors.reports.page import LEGEND
from engine.sweep.points import Point
from engine.sweep.runner import SweepResult
from engine.sweep.target_share import TargetShare, hottest_target
from engine.sweep.text import aligned
from engine.sweep.trial import Trial

_BAR_CELLS = 20
_MOST_LANES = 32
_MOST_CURVES = 8
_MARKS = {Tier.KERNEL: ":", Tier.SAMPLED: "~", Tier.AT_LEAST: "+"}
_MARKED = ("queue_ms", "service_ms", "await_ms", "busy_pct")
"""Figures whose tier varies."""
_DEVICES = ("Q ms", "S ms", "await ms", "busy %", "outst", "IOPS", "MB/s", "")


def point_lines(result: SweepResult) -> Iterator[str]:
    """Yield the lanes of each curve at its highest throughput; nothing of a sweep without them."""
    shown = 0
    for curve in result.curves:
        best = best_trial(curve.trials)
        if best is None or not (best.targets or best.devices):
            continue
        shown += 1
        if shown <= _MOST_CURVES:
            yield from _lanes(best, result.plan.point_name(Point(curve.curve.index, round(best.load))))
    if shown > _MOST_CURVES:
        yield f"{shown - _MOST_CURVES} more curves: their figures are in --json"


def _lanes(trial: Trial, name: str) -> Iterator[str]:
    at = f" at {name}" if name else ""
    if len(trial.targets) > 1:
        yield f"targets{at}: {hottest_words(trial.targets)}"
        yield from aligned(_TARGETS, [_target(share, trial.targets) for share in trial.targets[:_MOST_LANES]])
    below = point_figures(trial.devices)
    if below is None:
        return
    paths = [path for path in below.paths if path.key not in {disk.key for disk in below.disks}]
    tables = ([one for one in table if _is_used(one, trial)] for table in (below.disks, paths, below.ports))
    rows = [_device(one) for table in tables for one in table[:_MOST_LANES]]
    if rows:
        yield f"under the targets{at}, with all I/O of this host on them"
        yield from aligned(("", *_DEVICES), rows)
        yield LEGEND


def _is_used(device: DeviceFigures, trial: Trial) -> bool:
    """Whether a target of this point is on it, and not only one beyond the stripe width."""
    used = {share.name for share in trial.targets}
    return not used or not device.targets or bool(used.intersection(device.targets))


_TARGETS = ("", "share of I/Os", "%", "IOPS", "mean ms", "p99 ms", "")


def hottest_words(shares: Sequence[TargetShare]) -> str:
    """Say what the slowest target costs."""
    hottest = hottest_target(shares)
    if hottest is None:
        return "none is slower than its peers by 5 % or more"
    return f"without the lag of {hottest.target.name} the mean latency would be {hottest.cost_pct:.0f} % lower"


def _target(share: TargetShare, shares: Sequence[TargetShare]) -> tuple[str, ...]:
    part, hottest = share.ios / max(sum(each.ios for each in shares), 1), hottest_target(shares)
    cost = f"costs {hottest.cost_pct:.0f} %" if hottest is not None and hottest.target is share else ""
    bar = ("#" * round(_BAR_CELLS * part)).ljust(_BAR_CELLS)
    p99 = "-" if share.p99_ns is None else f"{share.p99_ns / 1e6:.3f}"
    return (share.name, bar, f"{100 * part:.0f}", f"{share.iops:,.0f}", f"{share.latency_ns / 1e6:.3f}", p99, cost)


def _device(device: DeviceFigures) -> tuple[str, ...]:
    def text(name: str, decimals: int, scale: float = 1.0) -> str:
        value = device.value(name) * scale
        mark = _MARKS.get(device.tier(name), "") if name in _MARKED else ""
        return "-" if math.isnan(value) else f"{mark}{value:,.{decimals}f}"

    times = (text(name, 3) for name in ("queue_ms", "service_ms", "await_ms"))
    rates = (text("busy_pct", 0), text("in_flight", 1), text("iops", 0), text("bytes_per_s", 1, 1e-6))
    return (device.name, *times, *rates, f"under {', '.join(device.targets[:2])}")
