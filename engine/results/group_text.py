"""The summary of several loads at once for people."""

from __future__ import annotations

from collections.abc import Iterator

from engine.results.group_result import GroupResult
from engine.results.result_text import ENDINGS, in_milliseconds, listed, table_header, table_row


def group_lines(group: GroupResult) -> Iterator[str]:
    """Yield a line of figures for each load and of the sum, in which percentiles are of all I/Os together."""
    total, seconds = group.total.total, group.duration_s
    in_ms = in_milliseconds(total)
    yield f"{len(group.loads)} loads at the same time on {listed(group.targets)}"
    yield f"ran {group.elapsed_s:.1f} s ({ENDINGS[group.ended]}), measured {seconds:.1f} s"
    yield ""
    yield table_header(in_ms=in_ms)
    for load in group.loads:
        yield f"[{load.name}]"
        yield table_row(load.result.total.total, load.result.duration_s, in_ms=in_ms)
    yield f"all, over {seconds:.1f} s"
    for label, part in (("read", group.total.read), ("write", group.total.write), ("total", total)):
        if part.ios and (label == "total" or part.ios < total.ios):
            yield table_row(part, seconds, label, in_ms=in_ms)
    for load in group.loads:
        if load.result.failure:
            yield f"failed: [{load.name}] {load.result.failure}"
