"""Response times in the form of NDISK: the share of the I/Os within limits of a job, and a histogram, by step.

Latencies are counted in buckets of the engine's histogram, so that an edge is accurate to 1 %.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from msgspec import Struct

from engine.job.spec import JobSpec
from engine.results.measured import Measured, share_between
from engine.results.result import RunResult


class _Span(Struct, frozen=True):
    """I/Os that took longer than `above_s` and no longer than `to_s`; None is no bound."""

    above_s: float | None
    to_s: float | None

    def share_pct(self, measured: Measured) -> float | None:
        lower_ns = -1.0 if self.above_s is None else self.above_s * 1e9
        upper_ns = float("inf") if self.to_s is None else self.to_s * 1e9
        return share_between(measured, lower_ns, upper_ns)


def _within(limits_s: Sequence[float]) -> list[_Span]:
    return [_Span(None, limit_s) for limit_s in limits_s]


def _between(edges_s: Sequence[float]) -> list[_Span]:
    if not edges_s:
        return []
    return [_Span(above_s, to_s) for above_s, to_s in itertools.pairwise((None, *edges_s, None))]


def response_document(result: RunResult) -> dict[str, object] | None:
    """Write both for all steps together and for each epoch; None if neither is wanted."""
    job = result.about.job
    if not (job.response_limits_s or job.response_edges_s):
        return None
    return {
        **_document(result.total.total, job),
        "epochs": [{"index": epoch.index, **_document(epoch.split.total, job)} for epoch in result.epochs],
    }


def _document(measured: Measured, job: JobSpec) -> dict[str, object]:
    return {
        "within": [{"limit_s": span.to_s, "pct": _share(span, measured)} for span in _within(job.response_limits_s)],
        "buckets": [
            {"above_s": span.above_s, "to_s": span.to_s, "ios": _ios(span, measured), "pct": _share(span, measured)}
            for span in _between(job.response_edges_s)
        ],
    }


def _share(span: _Span, measured: Measured) -> float | None:
    share = span.share_pct(measured)
    return None if share is None else round(share, 4)


def _ios(span: _Span, measured: Measured) -> int:
    return round((span.share_pct(measured) or 0.0) * measured.ios / 100)
