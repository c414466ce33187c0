"""Response times in the form of NDISK: the share of the I/Os within limits of a job, and a histogram, by step.

Latencies are counted in buckets of the engine's histogram, so that an edge is accurate to 1 %.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from msgspec import Struct

from engine.job.spec import JobSpec
from engine.results.measured import Measured, share_between
from engine.results.result import RunResult
from engine.text import three_digits

_A_LINE = 8
_LABEL, _CELL = 7, 9
"""Cells: eight limits fill 79 columns, which a terminal of 80 shows unbroken."""


class _Span(Struct, frozen=True):
    """I/Os that took longer than `above_s` and no longer than `to_s`; None is no bound."""

    above_s: float | None
    to_s: float | None

    @property
    def title(self) -> str:
        if self.to_s is None:
            return f"> {_time_text(self.above_s or 0.0)}"
        return f"<= {_time_text(self.to_s)}"

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


def response_lines(result: RunResult) -> Iterator[str]:
    """Yield a table of the shares within the limits and one of the histogram, a line for each step and one for all."""
    job = result.about.job
    within, buckets = _within(job.response_limits_s), _between(job.response_edges_s)
    parts = ("share of the I/Os within", within), ("histogram of the I/Os", buckets)
    for title, spans in parts:
        for start in range(0, len(spans), _A_LINE):
            shown = spans[start : start + _A_LINE]
            if start == 0:
                yield f"response time, {title}"
            yield _line("QD", [span.title for span in shown])
            for label, measured in _steps(result):
                yield _line(label, [_percent(span.share_pct(measured)) for span in shown])


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


def _steps(result: RunResult) -> Iterator[tuple[str, Measured]]:
    for epoch in result.epochs:
        yield str(epoch.knobs.queue_depth), epoch.split.total
    if len(result.epochs) > 1:
        yield "all", result.total.total


def _line(label: str, cells: Sequence[str]) -> str:
    return f"{label:>{_LABEL}}" + "".join(f"{cell:>{_CELL}}" for cell in cells)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2f}%"


def _time_text(seconds: float) -> str:
    """Write a time in at most six cells: "5ms", "0.25ms", "1.5s"."""
    if seconds >= 1:
        return f"{three_digits(seconds)}s"
    if seconds >= 0.001 or not seconds:
        return f"{three_digits(1e3 * seconds)}ms"
    return f"{three_digits(1e6 * seconds)}us"
