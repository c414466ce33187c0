"""Findings of a sweep: its measurements as points of curves."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from collectors.advice.figures import FiguresBelow, LoadFigures, TargetFigures
from collectors.advice.finding import LIMITS, Finding, FindingKind, in_order
from collectors.advice.point_devices import cpu_users_of, point_figures, state_findings_of
from collectors.advice.run_rules import run_findings
from collectors.advice.sweep_rules import LoadCurve, LoadPoint, curve_findings
from collectors.advice.unknown import full_devices, unknown_limit
from engine.job.knobs import Knobs
from engine.job.spec import Arrival, JobSpec
from engine.replacing import replace
from engine.sweep.axes import shown
from engine.sweep.knee import Shape
from engine.sweep.plan import SweepPlan
from engine.sweep.runner import CurveResult, SweepResult
from engine.sweep.text import PointSummary, summaries
from engine.sweep.trial import Trial, best_trial

_NO_MORE = frozenset({Shape.KNEE, Shape.PEAK, Shape.FLAT})
"""Curves on which more load gives no more throughput, up to the last one."""
_NEVER_STEADY = frozenset({Shape.WARMING, Shape.SLOWING})


def findings_of_sweep(result: SweepResult) -> tuple[Finding, ...]:
    """Find what limited the loads of a sweep: of each curve at its highest throughput, and over the loads of it.

    Open loops, limited rates and loads that pause have no findings over loads. A curve without an evident limit has a
    finding that says why.
    """
    plan = result.plan
    measured = [curve for curve in result.curves if curve.trials]
    over_loads = list(curve_findings([_curve(plan, one) for one in measured])) if _is_closed(plan, measured) else []
    found = list(over_loads)
    for curve in measured:
        found += _at_best(plan, curve, [each.kind for each in over_loads if each.where == curve.curve.name])
    return in_order(found)


def _is_closed(plan: SweepPlan, measured: list[CurveResult]) -> bool:
    if plan.job.arrival is not Arrival.CLOSED or plan.job.think_s > 0 or plan.job.knobs.rate_iops is not None:
        return False
    return not any(knob.key == "rate" for curve in measured for knob, _ in curve.curve.values)


def _at_best(plan: SweepPlan, curve: CurveResult, known: Sequence[FindingKind]) -> Iterator[Finding]:
    """Judge the load and the devices at the highest throughput; what the whole curve shows better is left out."""
    name, best = curve.curve.name, best_trial(curve.trials)
    if best is None:
        yield replace(unknown_limit(None, sampled=False), where=name)
        return
    below = point_figures(best.devices)
    run = (below or FiguresBelow()).under(_load(plan, curve, best, below))
    where = " ".join(filter(None, (name, _load_name(plan, best))))
    found = [each for each in (*run_findings(run), *state_findings_of(best.devices)) if each.kind not in known]
    yield from (replace(each, where=where) for each in found)
    if not LIMITS.intersection(known) and not any(each.kind in LIMITS for each in found):
        full = full_devices(run) if curve.answer.shape in _NO_MORE else None
        unknown = unknown_limit(run, sampled=below is not None, **_further(plan, curve))
        yield replace(full or unknown, where=where)


def _further(plan: SweepPlan, curve: CurveResult) -> dict[str, str]:
    """Say why the loads of this sweep do not show whether a busy disk is the limit; nothing if none varied."""
    if plan.load is None:
        return {}
    if curve.answer.shape is Shape.UNKNOWN or curve.answer.shape in _NEVER_STEADY:
        return {
            "further": f"whether throughput still rises with {plan.load.knob.key} is not seen: {curve.answer.words}"
        }
    return {"further": f"the curve over {plan.load.knob.key} does not show that more load gives no more"}


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


def _load_name(plan: SweepPlan, trial: Trial) -> str:
    return "" if plan.load is None else f"{plan.load.knob.key}={trial.load:g}"


def _load(plan: SweepPlan, curve: CurveResult, trial: Trial, below: FiguresBelow | None) -> LoadFigures:
    knobs = plan.knobs_at(curve.curve, round(trial.load))
    reads, writes = (trial.bytes_per_s if knobs.read_pct == share else math.nan for share in (100, 0))
    return LoadFigures(
        queue_depth=knobs.queue_depth,
        targets=_targets(trial, below),
        duration_s=trial.duration_s,
        ios=trial.ios,
        iops=trial.iops,
        latency_ns=trial.latency_ns,
        read_bytes_per_s=reads,
        write_bytes_per_s=writes,
        given_targets=len(trial.targets) or 1,
        one_queue=plan.job.total_queue_depth,
        closed=plan.job.arrival is Arrival.CLOSED,
        pauses=plan.job.think_s > 0,
        rate_iops=_known(knobs.rate_iops),
        direct=knobs.mode.is_direct,
        mode=knobs.mode.value,
        threads=knobs.threads,
        engine_share=_known(trial.engine_share),
        waiting_share=_known(trial.engine_waiting_share),
        cpu_users=cpu_users_of(trial.devices),
        host_busy_pct=_known(trial.host_busy_pct),
    )


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def _targets(trial: Trial, below: FiguresBelow | None) -> tuple[TargetFigures, ...]:
    """Read the targets of a trial; a single one, which has no figures of its own, is named as the disks below it do."""
    if trial.targets:
        return tuple(
            TargetFigures(share.name, share.ios, share.iops, share.latency_ns, share.waited_pct)
            for share in trial.targets
        )
    names = {name for disk in (() if below is None else below.disks) for name in disk.targets}
    name = names.pop() if len(names) == 1 else "the target"
    return (TargetFigures(name, trial.ios, trial.iops, trial.latency_ns),)
