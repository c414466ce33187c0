"""What the fan-out of the open epoch costs, in one line for those who watch."""

from __future__ import annotations

from collections.abc import Sequence

from engine.results.layout_result import logical_result
from engine.results.measured import BOTH, measure
from engine.running.backend import EpochStats

_FEW_IOS = 100


def tail_line(stats: EpochStats, names: Sequence[str]) -> str:
    """As in "whole I/Os 0.86 ms, 1.5 x a part; slowest disk sdc costs 35 %"; empty where no I/O was cut or copied."""
    logical = logical_result(stats, names, measure(stats, None, BOTH))
    if logical is None or logical.split.total.ios < _FEW_IOS:
        return ""
    mean_ns, factor, slowest = logical.split.total.mean_ns, logical.mean_amplification, logical.slowest
    if mean_ns is None or factor is None:
        return ""
    line = f"whole I/Os {mean_ns / 1e6:.3g} ms, {factor:.2f} x a part"
    cost = None if slowest is None else logical.cost_pct(slowest)
    return line if slowest is None or cost is None else f"{line}; slowest disk {slowest.target} costs {cost:.0f} %"
