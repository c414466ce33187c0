"""Layouts and paths in the JSON document of a run."""

from __future__ import annotations

from collections.abc import Callable

from engine.job.spec import TargetSpec
from engine.results.layout_result import LogicalResult, PathResult
from engine.results.measured import Split

Document = dict[str, object]
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
            "mean": _rounded(logical.mean_amplification),
            "p50": _rounded(logical.amplification(50)),
            "p90": _rounded(logical.amplification(90)),
            "p99": _rounded(logical.amplification(99)),
            "p99_9": _rounded(logical.amplification(99.9)),
        },
        "held_up_by": [
            {
                "target": hold_up.target,
                "last_ios": hold_up.last_ios,
                "last_pct": _rounded(logical.last_pct(hold_up)),
                "cost_pct": _rounded(logical.cost_pct(hold_up)),
            }
            for hold_up in logical.hold_ups
        ],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
