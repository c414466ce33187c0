"""The JSON document of a run, schema lunscope.run/1: a stable contract."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from engine.backend.outstanding import outstanding_document, stalls_document
from engine.errors import error_message, error_name
from engine.job.fixed_settings import TAIL
from engine.job.io_priority import IoPriority
from engine.job.knobs import KNOBS, Knobs
from engine.job.rate_floor import RateFloor
from engine.job.spec import Arrival, JobSpec, TargetSpec
from engine.results.badge import Badge
from engine.results.caveats import caveats, run_badges
from engine.results.cpu_use import CpuUse, per_gb_s, per_io_us
from engine.results.histogram import Latencies
from engine.results.layout_result import LogicalResult, PathResult, path_outcome_documents
from engine.results.measured import Measured, Split
from engine.results.result import EpochResult, ErrorCount, FsyncResult, RunResult, TargetResult
from engine.results.steadiness import steadiness_document
from engine.strict_json import rounded
from engine.verify.run_result import verified_document
from engine.version import version

SCHEMA = "lunscope.run/1"

Document: TypeAlias = dict[str, object]
"""A JSON object; every number in it is finite, and what is not known is null."""


def run_document(result: RunResult) -> Document:
    """Everything a run measured, ready for json.dumps."""
    about = result.about
    return {
        "schema": SCHEMA,
        "engine": {
            "backend": about.engine.backend,
            "version": version(),
            "features": list(about.engine.features),
            "why": about.engine.why,
        },
        "job": _job(about.job),
        "targets": list(about.targets),
        "notices": caveats(result),
        "badges": [_badge(badge) for badge in run_badges(result)],
        "ended": about.ended,
        "elapsed_s": about.elapsed_s,
        "duration_s": result.duration_s,
        "epochs": [_epoch(epoch, about.job.arrival) for epoch in result.epochs],
        **split_document(result.total, result.duration_s),
        "logical": logical_document(result.logical, lambda split: split_document(split, result.duration_s)),
        "cpu": _cpu(result.cpu, result.total),
        "cpu_us_per_io": result.cpu_ns / result.completed_ios / 1000 if result.completed_ios else None,
        "skipped": None if about.job.arrival is Arrival.CLOSED else result.skipped,
        "steady_state": steadiness_document(result.steadiness),
        "verify": None if result.verified is None else verified_document(result.verified),
        "failure": result.failure or None,
        "errors": [_error(error) for error in result.errors],
        "paths": path_outcome_documents(result.paths),
        "outstanding": outstanding_document(result.outstanding, about.started_ns, result.ended_ns),
        "stalls": stalls_document(result.stalls, about.started_ns),
    }


def _job(job: JobSpec) -> Document:
    return {
        "name": job.name,
        "targets": [target_name(target) for target in job.targets],
        "access": job.access.value,
        **{setting.field: _setting(getattr(job, setting.field)) for setting in TAIL},
        "knobs": _knobs(job.knobs),
    }


def _setting(value: object) -> object:
    if isinstance(value, RateFloor):
        return value.text
    if isinstance(value, tuple):
        return [each.text if isinstance(each, IoPriority) else each for each in value]
    return value.value if isinstance(value, Enum) else value


def _knobs(knobs: Knobs) -> Document:
    return {knob.id: knob.document(knobs) for knob in KNOBS.values()}


def _epoch(epoch: EpochResult, arrival: Arrival) -> Document:
    is_open = arrival is not Arrival.CLOSED
    return {
        "index": epoch.index,
        "knobs": _knobs(epoch.knobs),
        "start_s": epoch.start_s,
        "duration_s": epoch.duration_s,
        "transient_ios": epoch.transient_ios,
        **split_document(epoch.split, epoch.duration_s),
        "logical": logical_document(epoch.logical, lambda split: split_document(split, epoch.duration_s)),
        "policy_ns_per_io": None if epoch.policy_ns is None else round(epoch.policy_ns, 1),
        "fsync": _fsync(epoch.fsyncs),
        "cpu": _cpu(epoch.cpu, epoch.split),
        "skipped": epoch.skipped if is_open else None,
        "targets": [_target(target, epoch.duration_s, is_open=is_open) for target in epoch.targets],
    }


def _target(target: TargetResult, duration_s: float, *, is_open: bool) -> Document:
    return {
        "name": target.name,
        **split_document(target.split, duration_s),
        "skipped": target.skipped if is_open else None,
        "paths": path_documents(target.paths, lambda split: split_document(split, duration_s)),
    }


def split_document(split: Split, duration_s: float) -> Document:
    """Write reads, writes and both, measured for so long."""
    return {
        "read": measured_document(split.read, duration_s),
        "write": measured_document(split.write, duration_s),
        "total": measured_document(split.total, duration_s),
    }


def measured_document(measured: Measured, duration_s: float) -> Document:
    """Write I/Os that were measured for so long."""
    return {
        "ios": measured.ios,
        "bytes": measured.bytes,
        "iops": measured.ios / duration_s if duration_s else None,
        "bytes_per_s": measured.bytes / duration_s if duration_s else None,
        "latency_us": {
            "min": _us(measured.least_ns),
            "mean": _us(measured.mean_ns),
            "p50": _us(measured.percentile_ns(50)),
            "p90": _us(measured.percentile_ns(90)),
            "p99": _us(measured.percentile_ns(99)),
            "p99_9": _us(measured.percentile_ns(99.9)),
            "max": _us(measured.largest_ns),
            "avg_peak": _us(measured.average_peak_ns),
        },
        "service_us": None if measured.service is None else _service(measured.service),
    }


def _service(service: Latencies) -> Document:
    return {
        "min": _us(service.least_ns),
        "mean": _us(service.mean_ns),
        "p50": _us(service.percentile_ns(50)),
        "p90": _us(service.percentile_ns(90)),
        "p99": _us(service.percentile_ns(99)),
        "p99_9": _us(service.percentile_ns(99.9)),
        "max": _us(service.largest_ns),
    }


def _badge(badge: Badge) -> Document:
    return {
        "id": badge.kind.value,
        "targets": list(badge.targets),
        "share": badge.share,
        "label": badge.label,
        "text": badge.text,
    }


def _fsync(fsyncs: FsyncResult) -> Document | None:
    if not fsyncs.ios and not fsyncs.errors:
        return None
    latency = {"mean": _us(fsyncs.mean_ns), "max": _us(fsyncs.largest_ns if fsyncs.ios else None)}
    return {"ios": fsyncs.ios, "errors": fsyncs.errors, "latency_us": latency}


def _cpu(cpu: CpuUse | None, split: Split) -> Document | None:
    if cpu is None:
        return None
    total = split.total
    return {
        "engine_us_per_io": per_io_us(cpu.engine_ns, total.ios),
        "engine_s_per_gb": per_gb_s(cpu.engine_ns, total.bytes),
        "engine_waited_us_per_io": _waited_us(cpu, total.ios),
        "host_us_per_io": per_io_us(cpu.host_used_ns, total.ios),
        "host_s_per_gb": per_gb_s(cpu.host_used_ns, total.bytes),
        "host_busy_pct": cpu.host_busy_pct,
        "host_is_least": cpu.host_is_least,
    }


def _waited_us(cpu: CpuUse, ios: int) -> float | None:
    return None if cpu.engine_waited_ns is None else per_io_us(cpu.engine_waited_ns, ios)


def _us(value_ns: float | None) -> float | None:
    return None if value_ns is None else round(value_ns / 1000, 3)


def _error(error: ErrorCount) -> Document:
    return {
        "target": error.target,
        "direction": error.direction,
        "errno": error.errno,
        "name": error_name(error.errno),
        "message": error_message(error.errno),
        "first_offset": error.first_offset,
        "ios": error.ios,
    }


SplitDocument = Callable[[Split], Document]


def target_name(spec: TargetSpec) -> object:
    """Write a target of the job: its path, null for a scratch file, an object for a LUN with several paths."""
    if not spec.paths:
        return spec.path
    return {
        "paths": [{"path": path.path, "weight": path.weight, "preferred": path.preferred} for path in spec.paths],
    }


def path_documents(paths: tuple[PathResult, ...], write: SplitDocument) -> list[Document]:
    """Write the paths of a target; failed attempts are `errors`."""
    return [{"name": path.name, "errors": path.split.total.errors, **write(path.split)} for path in paths]


def logical_document(logical: LogicalResult | None, write: SplitDocument) -> Document | None:
    """Write logical I/Os, what the fan-out cost, and what each target held up; null where no I/O was cut or copied."""
    if logical is None:
        return None
    total = logical.split.total
    return {
        **write(logical.split),
        "errors": total.errors,
        "parts_per_io": round(logical.parts.ios / total.ios, 3) if total.ios else None,
        "tail_amplification": {
            "mean": rounded(logical.mean_amplification, 3),
            "p50": rounded(logical.amplification(50), 3),
            "p90": rounded(logical.amplification(90), 3),
            "p99": rounded(logical.amplification(99), 3),
            "p99_9": rounded(logical.amplification(99.9), 3),
        },
        "held_up_by": [
            {
                "target": hold_up.target,
                "last_ios": hold_up.last_ios,
                "last_pct": rounded(logical.last_pct(hold_up), 3),
                "cost_pct": rounded(logical.cost_pct(hold_up), 3),
            }
            for hold_up in logical.hold_ups
        ],
    }
