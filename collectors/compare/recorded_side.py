"""A part of a recording as one side of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from collectors.compare.collected import CollectedIntervals
from collectors.compare.part import PartText, TimeRange, range_of
from collectors.compare.side import Side
from collectors.field import Field
from collectors.rates import derive
from collectors.session.reader import SessionReader
from engine.errors import UsageError
from engine.text import safe_text


def recorded_side(text: str, part: PartText, tables: Mapping[str, Sequence[Field]]) -> Side:
    """Read a part of a recording.

    Raises:
        UsageError: the part holds no whole interval, or cannot be found.
        LunscopeError: the file cannot be read.
    """
    with SessionReader(part.path) as reader:
        span = range_of(part, reader)
        collected = _collected(reader, span, tables)
        if not collected.intervals or collected.frame is None:
            raise UsageError(f"{safe_text(text)}: holds no whole interval: give a longer part")
        growing = not reader.complete and not part.end and not part.epoch
        return Side(
            text,
            "recording",
            collected.rows(growing=growing),
            collected.intervals,
            collected.interval_s,
            span.start_ns,
            span.end_ns,
            span.words,
            collected.frame.topology.host.tier,
            growing,
            reader.notice,
        )


def _collected(reader: SessionReader, span: TimeRange, tables: Mapping[str, Sequence[Field]]) -> CollectedIntervals:
    collected = CollectedIntervals(tables)
    for step in reader.steps(reader.index_at(span.start_ns), reader.index_at(span.end_ns)):
        previous, current = step.previous, step.current
        if previous is None or previous.time_ns < span.start_ns or current.time_ns > span.end_ns:
            continue
        frame = derive(previous, current)
        if np.isfinite(frame.elapsed_s):
            collected.add(frame, current.histograms)
    return collected
