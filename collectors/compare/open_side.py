"""Opens what was typed as A or B: a recording, a part of one, the result of a run, or a point of a sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from collectors.compare.collected import CollectedIntervals
from collectors.compare.comparison import CompareOptions, wanted_fields
from collectors.compare.part import PartText, TimeRange, range_of
from collectors.compare.run_side import is_document, run_side
from collectors.compare.side import Side
from collectors.compare.sweep_side import is_trial_file, sweep_side
from collectors.field import Field
from collectors.rates import derive
from collectors.registry import subject_of
from collectors.session.reader import SessionReader
from engine.errors import UsageError
from engine.text import safe_text

TABLES = ("load_total", "load", "disks", "paths", "hbas", "tapes")
"""Tables that are compared if none are named, in this order."""

_NAMES_SHOWN = 3


def open_side(text: str, options: CompareOptions, tables: Sequence[str] = TABLES) -> Side:
    """Read what a comparison with these options needs of one side.

    Raises:
        UsageError: the part is unknown, empty, or the file is of another kind.
        LunscopeError: the file cannot be read.
    """
    part = PartText.parse(text)
    wanted = {table: wanted_fields(table, options) for table in tables}
    if not is_document(part.path):
        return recorded_side(text, part, wanted)
    return sweep_side(text, part) if is_trial_file(part.path) else run_side(text, part)


def require_apart(a: Side, b: Side, same_file: bool) -> None:
    """Refuse parts of one recording that share time: the same intervals on both sides hide any difference.

    Raises:
        UsageError: they do.
    """
    if not same_file or a.start_ns is None or b.start_ns is None or a.end_ns is None or b.end_ns is None:
        return
    if max(a.start_ns, b.start_ns) < min(a.end_ns, b.end_ns):
        raise UsageError("A and B overlap in time: give parts that share no interval")


def holdings(side: Side) -> str:
    """Say in a few words what a side holds."""
    counts = Counter(row.table for row in side.rows if row.table != "load_total")
    if not counts:
        return "nothing to compare"
    return ", ".join(_holding(side, table, count) for table, count in counts.items())


def _holding(side: Side, table: str, count: int) -> str:
    names = [row.name for row in side.rows if row.table == table]
    more = ", ..." if count > _NAMES_SHOWN else ""
    return f"{subject_of(table).counted(count)} ({', '.join(names[:_NAMES_SHOWN])}{more})"


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
