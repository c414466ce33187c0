"""Findings of an open loop: what limited it at its highest throughput."""

from __future__ import annotations

import math
from collections.abc import Iterator

from collectors.advice.figures import FiguresBelow, LoadFigures, TargetFigures
from collectors.advice.finding import LIMITS, Finding, in_order
from collectors.advice.point_devices import point_figures
from collectors.advice.run_rules import run_findings
from collectors.advice.unknown import unknown_limit
from engine.rate_search.runner import RateCurve, RateResult
from engine.rate_search.trial import RateTrial
from engine.replacing import replace


def findings_of_rates(result: RateResult) -> tuple[Finding, ...]:
    """Judge each combination by the highest throughput of rates that it did not carry, or else of all."""
    return in_order(
        finding
        for index, curve in enumerate(result.curves)
        if curve.trials
        for finding in _of_curve(result, index, curve)
    )


def _of_curve(result: RateResult, index: int, curve: RateCurve) -> Iterator[Finding]:
    used = [trial for trial in curve.trials if not trial.failing and trial.iops > 0]
    # What was not carried shows the limit; what was is limited by its rate.
    best = max(used, key=lambda trial: (not trial.is_sustained, trial.iops), default=None)
    if best is None:
        yield replace(unknown_limit(None, sampled=False), where=curve.name)
        return
    below = point_figures(best.devices)
    run = (below or FiguresBelow()).under(_load(result, index, best))
    found = list(run_findings(run))
    if not any(each.kind in LIMITS for each in found):
        found.append(unknown_limit(run, sampled=below is not None))
    where = f"{curve.name} open loop, rate={best.rate:,.0f}".strip()
    yield from (replace(each, where=where) for each in found)


def _load(result: RateResult, index: int, trial: RateTrial) -> LoadFigures:
    """Figures of the load; those of its targets are not measured one by one."""
    knobs, job = result.plan.knobs_at(index, trial.rate), result.plan.job
    mean_ns = trial.latencies_ns.get("mean", math.nan)
    return LoadFigures(
        queue_depth=knobs.queue_depth,
        targets=(TargetFigures("all targets", trial.ios, trial.iops, mean_ns),),
        duration_s=trial.duration_s,
        ios=trial.ios,
        iops=trial.iops,
        latency_ns=mean_ns,
        one_queue=job.total_queue_depth,
        closed=False,
        pauses=job.think_s > 0,
        rate_iops=trial.rate,
        direct=knobs.mode.is_direct,
        mode=knobs.mode.value,
        threads=knobs.threads,
    )
