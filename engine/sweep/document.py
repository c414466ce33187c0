"""The JSON document of a sweep, schema lunscope.sweep/1: a stable contract."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from engine.job.knobs import Knob
from engine.replacing import replace
from engine.study.decoded import Count, Figure, decoded
from engine.sweep.axes import document_value
from engine.sweep.knee import Answer, LittleCheck
from engine.sweep.optimum import Optimum
from engine.sweep.plan import SweepPlan
from engine.sweep.runner import CurveResult, SweepResult
from engine.sweep.servers import Servers
from engine.sweep.target_share import TargetShare, hottest_target
from engine.sweep.trial import Trial
from engine.sweep.usl import Usl
from engine.version import version

SCHEMA = "lunscope.sweep/1"

Document: TypeAlias = dict[str, object]
"""A JSON object; every number in it is finite, and what is not known is null."""

_LATENCIES = (("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p99.9", "p99_9"), ("max", "max"))


def sweep_document(result: SweepResult, targets: tuple[str, ...]) -> Document:
    """Everything a sweep measured and found, ready for json.dumps."""
    plan = result.plan
    return {
        "schema": SCHEMA,
        "version": version(),
        "targets": list(targets),
        "axes": [{"knob": axis.knob.id, "values": [axis.shown(value) for value in axis.values]} for axis in plan.axes],
        "load": None if plan.load is None else plan.load.knob.id,
        "limits": [limit.text for limit in plan.limits],
        "ended": result.ended,
        "complete": result.is_complete,
        "elapsed_s": result.elapsed_s,
        "troubles": list(result.troubles),
        "curves": [_curve(plan, curve) for curve in result.curves],
    }


def _curve(plan: SweepPlan, result: CurveResult) -> Document:
    values: list[tuple[Knob, object]] = list(result.curve.values)
    return {
        "knobs": {knob.id: document_value(knob, value, plan.job.knobs) for knob, value in values},
        "answer": _answer(result.answer),
        "trials": [_trial(plan, trial) for trial in result.trials],
    }


def _answer(answer: Answer) -> Document:
    return {
        "shape": answer.shape.value,
        "text": answer.words,
        "best_balance": _optimum(answer.balance),
        "best_within": [{"limit": limit.text, "optimum": _optimum(optimum)} for limit, optimum in answer.within],
        "highest_throughput": _optimum(answer.highest),
        "left_inflection": answer.left,
        "right_inflection": answer.right,
        "fit_error": answer.fit_error,
        "drift": answer.drift,
        "usl": _usl(answer.usl),
        "little": _little(answer.little),
        "noise": answer.noise,
        "host_busy_pct": answer.host_busy_pct,
        "servers": _servers(answer.servers),
    }


def _optimum(optimum: Optimum | None) -> Document | None:
    if optimum is None:
        return None
    return {
        "load": optimum.whole_load,
        "found": optimum.found,
        "low": optimum.low,
        "high": optimum.high,
        "set_back": optimum.set_back_share,
        "iops": optimum.at.iops,
        "latency_us": {"mean": optimum.at.latency_ns / 1000},
        "ios": optimum.ios,
    }


def _usl(usl: Usl | None) -> Document | None:
    if usl is None:
        return None
    return {
        "lambda": usl.rate,
        "sigma": usl.contention,
        "kappa": usl.coherency,
        "peak_load": usl.peak_load,
        "fit_error": usl.error,
        "r_squared": usl.r_squared,
    }


def _servers(servers: Servers | None) -> Document | None:
    if servers is None:
        return None
    return {"count": servers.count, "service_us": servers.service_ns / 1000, "deviation": servers.deviation}


def _little(check: LittleCheck | None) -> Document | None:
    return None if check is None else {"load": check.load, "deviation": check.deviation, "holds": check.holds}


def _trial(plan: SweepPlan, trial: Trial) -> Document:
    latencies = {key: _us(trial.latencies_ns.get(name)) for name, key in _LATENCIES}
    return {
        "load": None if plan.load is None else trial.load,
        "stage": trial.stage,
        "start_s": trial.start_s,
        "duration_s": trial.duration_s,
        "ios": trial.ios,
        "errors": trial.errors,
        "iops": trial.iops,
        "iops_half_width": trial.half_width if math.isfinite(trial.half_width) else None,
        "bytes_per_s": trial.bytes_per_s,
        "in_flight": trial.in_flight,
        "latency_us": {"mean": _us(trial.latency_ns), **latencies, "average_peak": _us(trial.average_peak_ns)},
        "stopped_by": trial.stop.value,
        "steady": trial.is_settled,
        "trend": trial.trend.value,
        "failing": list(trial.failing),
        "targets": [_target(share) for share in trial.targets],
        "hottest": _hottest(trial),
        "host_cpu_s_per_gb": trial.host_cpu_s_per_gb,
        "engine_cpus": trial.engine_cpus,
        "engine_share": trial.engine_share,
        "engine_waiting_share": trial.engine_waiting_share,
        "host_busy_pct": trial.host_busy_pct,
        "devices": trial.devices,
    }


_AS_THEY_ARE = ("in_flight", "iops", "bytes_per_s", "start_s", "duration_s", "ios", "trend", "failing", "devices")


def read_trial(document: Mapping[str, Any]) -> Trial | None:
    """Read what a report shows of a trial of such a document; None if it is damaged."""
    latencies = decoded(dict[str, Figure | None], document.get("latency_us")) or {}
    known = {name: value * 1000 for name, key in _LATENCIES if (value := latencies.get(key)) is not None}
    mean_us, width = latencies.get("mean"), document.get("iops_half_width")
    if mean_us is None:
        return None
    values = {
        "load": document.get("load") or 1.0,
        "latency_ns": mean_us * 1000,
        "latencies_ns": known,
        "stop": document.get("stopped_by"),
        "is_settled": document.get("steady"),
        **{name: document[name] for name in _AS_THEY_ARE if name in document},
    }
    found = decoded(Trial, values)
    half_width = math.inf if width is None else decoded(Figure, width)
    if found is None or half_width is None:
        return None
    return replace(found, half_width=half_width, targets=tuple(_read_targets(document.get("targets"))))


class _Share(Struct, frozen=True):
    """A target as it is written here."""

    name: str
    ios: Count
    iops: Figure
    latency_us: Mapping[str, Figure | None]
    waited_pct: Figure | None = None


def _read_targets(documents: object) -> Iterator[TargetShare]:
    for each in decoded(tuple[_Share, ...], documents) or ():
        mean_us, p99_us = each.latency_us.get("mean"), each.latency_us.get("p99")
        if mean_us is not None:
            p99_ns = None if p99_us is None else 1000 * p99_us
            yield TargetShare(each.name, each.ios, each.iops, 1000 * mean_us, p99_ns, each.waited_pct)


def _target(share: TargetShare) -> Document:
    return {
        "name": share.name,
        "ios": share.ios,
        "iops": share.iops,
        "latency_us": {"mean": _us(share.latency_ns), "p99": _us(share.p99_ns)},
        "waited_pct": share.waited_pct,
    }


def _hottest(trial: Trial) -> Document | None:
    hottest = hottest_target(trial.targets)
    return None if hottest is None else {"name": hottest.target.name, "cost_pct": hottest.cost_pct}


def _us(value_ns: float | None) -> float | None:
    return None if value_ns is None else round(value_ns / 1000, 3)
