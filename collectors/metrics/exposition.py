"""The text exposition format 0.0.4 of Prometheus (prometheus.io/docs/instrumenting/exposition_formats).

prometheus_client renders 34,000 samples in 115 ms, several times what a scrape of 2,000 devices may cost, because it
escapes every label and checks every name again; here labels are rendered once per set of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from collectors.metrics.family import MetricHistogram, MetricPoint, Values

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(measured: Iterable[MetricPoint]) -> Iterator[str]:
    """Yield the lines of each family as one text that ends with a line break."""
    for one in measured:
        family = one.family
        yield f"# HELP {family.name} {_escaped_help(family.help)}\n# TYPE {family.name} {family.kind}\n"
        for values in one.values:
            yield _values(family.name, values)
        for distribution in one.distributions:
            yield from _distribution(family.name, distribution)


def _values(name: str, part: Values) -> str:
    if not part.more and len(part.labels) == 1 and not part.labels[0]:
        return f"{name} {part.values[0]!r}\n"
    comma = "," if part.more and any(part.labels) else ""
    more = f"{comma}{part.more}}}"
    lines = [f"{name}{{{label}{more} {value!r}\n" for label, value in zip(part.labels, part.values, strict=True)]
    return "".join(lines)


def _distribution(name: str, part: MetricHistogram) -> Iterator[str]:
    ends = [f',le="{border}"}} ' for border in (*part.borders_s, "+Inf")]
    start = f"{name}_bucket{{"
    cumulative = np.cumsum(part.counts, axis=1, dtype=np.uint64).tolist()
    for label, counts, sum_s in zip(part.labels, cumulative, part.sums_s.tolist(), strict=True):
        head = start + label
        buckets = "".join([f"{head}{end}{count}\n" for end, count in zip(ends, counts, strict=True)])
        yield f"{buckets}{name}_sum{{{label}}} {sum_s!r}\n{name}_count{{{label}}} {counts[-1]}\n"


def _escaped_help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")
