"""What targets and devices did at the highest throughput of a curve: a lane for each, and the cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from collectors.advice.figures import DeviceFigures
from collectors.advice.of_sweep import best_trial
from collectors.advice.point_devices import point_figures
from collectors.model import Tier
from collectors.reports.documents.content import Block, DocumentTable
from collectors.reports.documents.json_values import figure
from collectors.reports.page import LEGEND
from engine.sweep.target_share import TargetShare, hottest_target
from engine.sweep.trial import Trial

_BAR_CELLS = 20
_MOST_LANES = 32
_MARKS = {Tier.KERNEL: ":", Tier.SAMPLED: "~", Tier.AT_LEAST: "+"}
_MARKED = ("queue_ms", "service_ms", "await_ms", "busy_pct")
"""Figures whose tier varies."""
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
_DEVICES = (
    ("device", ""),
    ("Q", "ms"),
    ("S", "ms"),
    ("await", "ms"),
    ("busy", "%"),
    ("outst", ""),
    ("IOPS", "1/s"),
    ("throughput", "MB/s"),
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
    below = point_figures(best.devices)
    if below is None:
        return
    paths = [path for path in below.paths if path.key not in {disk.key for disk in below.disks}]
    tables = ([one for one in table if _is_used(one, best)] for table in (below.disks, paths, below.ports))
    lanes = tuple(_device(one) for table in tables for one in table[:_MOST_LANES])
    if lanes:
        yield DocumentTable(f"Under the targets{at}, with all I/O of this host on them", _DEVICES, lanes, note=LEGEND)


def _is_used(device: DeviceFigures, trial: Trial) -> bool:
    """Whether a target of this point is on it, and not only one beyond the stripe width."""
    used = {share.name for share in trial.targets}
    return not used or not device.targets or bool(used.intersection(device.targets))


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


def _device(device: DeviceFigures) -> tuple[str, ...]:
    def text(name: str, decimals: int, scale: float = 1.0) -> str:
        value = device.value(name) * scale
        mark = _MARKS.get(device.tier(name), "") if name in _MARKED else ""
        return "-" if math.isnan(value) else f"{mark}{figure(value, decimals)}"

    times = (text(name, 3) for name in ("queue_ms", "service_ms", "await_ms"))
    rates = (text("busy_pct", 0), text("in_flight", 1), text("iops", 0), text("bytes_per_s", 1, 1e-6))
    return (device.name, *times, *rates, f"under {', '.join(device.targets[:2])}")
