"""Response times in the form of NDISK, from the key `response_times` of a run: by step, and of all I/Os."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from collectors.reports.documents.content import Block, DocumentTable
from collectors.reports.documents.json_values import Values, figure, number, part, parts, text_of
from engine.text import three_digits

_TITLES = {
    "within": "Response time, share of the I/Os within",
    "buckets": "Response time, histogram of the I/Os",
}


def response_blocks(run: Values) -> Iterator[Block]:
    """Yield a table of the shares within the limits and one of the histogram; nothing where neither was wanted."""
    times = part(run, "response_times")
    depths = [text_of(part(epoch, "knobs").get("queue_depth")) for epoch in parts(run, "epochs")]
    steps = list(zip(depths, parts(times, "epochs"), strict=False))
    steps += [("all", times)] if len(steps) != 1 else []
    for key, title in _TITLES.items():
        spans = parts(times, key)
        if spans:
            head = (("QD", ""), *((_span(each), "%") for each in spans))
            yield DocumentTable(title, head, tuple((name, *_shares(parts(step, key))) for name, step in steps))


def _shares(spans: Sequence[Values]) -> Iterator[str]:
    return (figure(number(each, "pct"), 2) for each in spans)


def _span(span: Values) -> str:
    to_s = number(span, "limit_s") if "limit_s" in span else number(span, "to_s")
    return f"<={_time(to_s)}" if math.isfinite(to_s) else f">{_time(number(span, 'above_s'))}"


def _time(seconds: float) -> str:
    """Write a time in few cells: "5ms", "0.25ms", "1.5s"."""
    if not math.isfinite(seconds):
        return "-"
    if seconds >= 1:
        return f"{three_digits(seconds)}s"
    if seconds >= 0.001 or not seconds:
        return f"{three_digits(1e3 * seconds)}ms"
    return f"{three_digits(1e6 * seconds)}us"
