"""Findings of a sweep: its measurements as points of curves."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import replace

from collectors.advice.figures import LoadFigures, TargetFigures
from collectors.advice.finding import Finding, in_order
from collectors.advice.load_rules import load_findings
from collectors.advice.sweep_rules import LoadCurve, LoadPoint, curve_findings
from engine.job.knobs import Knobs
from engine.job.spec import Arrival, JobSpec
from engine.sweep.axes import shown
from engine.sweep.plan import SweepPlan
from engine.sweep.runner import CurveResult, SweepResult
from engine.sweep.text import PointSummary, summaries
from engine.sweep.trial import Trial


def findings_of_sweep(result: SweepResult) -> tuple[Finding, ...]:
    """Find what limited the loads of a sweep; nothing of open loops, limited rates and loads that pause.

    Only from the load's own figures: those of devices are not kept for each measurement.
    """
    plan = result.plan
    if plan.job.arrival is not Arrival.CLOSED or plan.job.think_s > 0 or plan.job.knobs.rate_iops is not None:
        return ()
    measured = [curve for curve in result.curves if curve.trials]
    if any(knob.key == "rate" for curve in measured for knob, _ in curve.curve.values):
        return ()
    return in_order((*curve_findings([_curve(plan, one) for one in measured]), *_slow_targets(plan, measured)))


def _curve(plan: SweepPlan, result: CurveResult) -> LoadCurve:
    sizes = result.curve.knobs.block_sizes
    return LoadCurve(
        name=result.curve.name,
        key="" if plan.load is None else plan.load.knob.key,
        points=tuple(_point(plan, result, point) for point in summaries(result.trials) if _counts(point)),
        values={knob.key: shown(knob, value) for knob, value in result.curve.values},
        block_bytes=sizes[0] if len(sizes) == 1 else math.nan,
    )


def _counts(point: PointSummary) -> bool:
    return not any(trial.failing for trial in point.trials)


def _point(plan: SweepPlan, result: CurveResult, point: PointSummary) -> LoadPoint:
    trials, knobs = point.trials, plan.knobs_at(result.curve, round(point.load))
    return LoadPoint(
        load=point.load,
        iops=point.iops,
        latency_ns=statistics.median(trial.latency_ns for trial in trials),
        spread=point.spread,
        count=len(trials),
        is_steady=all(trial.is_settled for trial in trials),
        bytes_per_s=statistics.median(trial.bytes_per_s for trial in trials),
        depth_share=statistics.median(trial.in_flight for trial in trials) / _depth(plan.job, knobs),
    )


def _depth(job: JobSpec, knobs: Knobs) -> int:
    return knobs.queue_depth * (1 if job.total_queue_depth else knobs.stripe_width)


def _slow_targets(plan: SweepPlan, curves: list[CurveResult]) -> Iterator[Finding]:
    """Judge the targets at the highest throughput of each curve."""
    for curve in curves:
        used = [trial for trial in curve.trials if trial.targets and not trial.failing]
        if used:
            best = max(used, key=lambda trial: trial.iops)
            where = " ".join(filter(None, (curve.curve.name, _load_name(plan, best))))
            yield from (replace(found, where=where) for found in load_findings(_load(plan, curve, best)))


def _load_name(plan: SweepPlan, trial: Trial) -> str:
    return "" if plan.load is None else f"{plan.load.knob.key}={trial.load:g}"


def _load(plan: SweepPlan, curve: CurveResult, trial: Trial) -> LoadFigures:
    knobs = plan.knobs_at(curve.curve, round(trial.load))
    targets = tuple(
        TargetFigures(share.name, share.ios, share.iops, share.latency_ns, share.waited_pct) for share in trial.targets
    )
    return LoadFigures(
        queue_depth=knobs.queue_depth,
        targets=targets,
        duration_s=trial.duration_s,
        ios=trial.ios,
        iops=trial.iops,
        latency_ns=trial.latency_ns,
        given_targets=len(targets),
        one_queue=plan.job.total_queue_depth,
    )
