"""The open loop in the JSON document of a sweep, key `open_loop`: a stable contract."""

from __future__ import annotations

from engine.rate_search.answer import RateAnswer, RateAnswers, RateBound
from engine.rate_search.goal import allowed_share
from engine.rate_search.runner import RateCurve, RateResult
from engine.rate_search.text import cautions, headline
from engine.rate_search.trial import RateTrial
from engine.sweep.document import SCHEMA, Document
from engine.version import version

_LATENCIES = (("mean", "mean"), ("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p99.9", "p99_9"), ("max", "max"))


def rate_document(result: RateResult, targets: tuple[str, ...]) -> Document:
    """Write a document with the keys of a sweep that has no axes, and what the search found."""
    return {
        "schema": SCHEMA,
        "version": version(),
        "targets": list(targets),
        "axes": [],
        "load": None,
        "limits": [limit.text for limit in result.plan.limits],
        "ended": result.ended,
        "complete": result.is_complete,
        "elapsed_s": result.elapsed_s,
        "troubles": list(result.troubles),
        "curves": [],
        "open_loop": open_loop(result),
    }


def open_loop(result: RateResult) -> Document:
    """Write what a search measured and found."""
    goal = result.plan.search.goal
    return {
        "arrival": result.plan.job.arrival.value,
        "ended": result.ended,
        "complete": result.is_complete,
        "elapsed_s": result.elapsed_s,
        "troubles": list(result.troubles),
        "goal": {"width": goal.width, "exceed_ratio": goal.exceed_ratio},
        "searches": [_curve(result, curve) for curve in result.curves],
    }


def _curve(result: RateResult, curve: RateCurve) -> Document:
    search = result.plan.search
    phase = None if search.grid(curve.trials) is None else search.phases[-1]
    return {
        "name": curve.name,
        "queue_depth": curve.depth,
        "trial_s": None if phase is None else phase.trial_s,
        "duration_sum_s": None if phase is None else phase.duration_sum_s,
        "maximum_iops": curve.answers.maximum,
        "maximum_is_capped": curve.answers.is_capped,
        "trial_count": len(curve.trials),
        "measured_s": sum(trial.duration_s for trial in curve.trials),
        "limits": [_answer(answer, curve.answers) for answer in curve.answers.limits],
        "trials": [_trial(result, trial) for trial in curve.trials],
    }


def _answer(answer: RateAnswer, answers: RateAnswers) -> Document:
    return {
        "limit": answer.limit.text,
        "verdict": answer.verdict.name.lower(),
        "text": headline(answer, answers),
        "cautions": list(cautions(answer)),
        "allowed_share": allowed_share(answer.limit),
        "conditional_throughput": answer.conditional,
        "lower": _bound(answer.lower),
        "upper": _bound(answer.upper),
        "undecided": list(answer.undecided),
        "undecided_ios": answer.undecided_ios,
        "kept_above": answer.kept_above,
        "measured_again": [
            {"before": _bound(each.before), "now": _bound(each.now), "rounds": each.rounds} for each in answer.again
        ],
        "stalled_share": answer.stalled_share,
        "host_busy_pct": answer.host_busy_pct,
    }


def _bound(bound: RateBound | None) -> Document | None:
    if bound is None:
        return None
    return {
        "rate": bound.rate,
        "kept": bound.good,
        "exceeded": bound.bad,
        "exceeded_s": bound.exceeded_s,
        "ios": bound.ios,
        "over": bound.over,
        "excess_share": bound.excess,
        "latency_us": None if bound.latency_ns is None else round(bound.latency_ns / 1000, 3),
    }


def _trial(result: RateResult, trial: RateTrial) -> Document:
    known = trial.latencies_ns
    return {
        "rate": trial.rate,
        "stage": trial.stage,
        "start_s": trial.start_s,
        "duration_s": trial.duration_s,
        "ios": trial.ios,
        "errors": trial.errors,
        "skipped": trial.skipped,
        "iops": trial.iops,
        "bytes_per_s": trial.bytes_per_s,
        "latency_us": {key: round(known[name] / 1000, 3) if name in known else None for name, key in _LATENCIES},
        "sustained": trial.is_sustained,
        "limits": [
            {"limit": limit.text, "excess_share": trial.excess_of(limit), "kept": trial.keeps(limit)}
            for limit in result.plan.limits
        ],
        "failing": list(trial.failing),
        "host_busy_pct": trial.host_busy_pct,
        "devices": trial.devices,
    }
