"""Comparisons computed beside the screen: reading parts of a recording takes longer than a frame may."""

from __future__ import annotations

import functools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from collectors.compare.collected import CollectedIntervals
from collectors.compare.comparison import CompareOptions, Comparison, compare, wanted_fields
from collectors.compare.open_side import open_side, require_apart
from collectors.compare.part import PartText
from collectors.compare.side import Side
from engine.errors import LunscopeError, UsageError
from engine.newest_work import NewestWork
from engine.replacing import replace
from tui.history.intervals import KeptInterval
from tui.screens.compare.parts import FilePart, Part, TimePart

MOST_ROWS = 2000
"""Rows of a table from which on it is compared only if it was chosen: a disk behind a thousand paths has them all."""
_MOST_KEPT = 4
_REST = 4.0
"""Rest after a comparison, in times of what it took: at most a fifth of one CPU for what grows."""
_MOST_REST_S = 5.0
_BREATH_EVERY, _BREATH_S = 20, 0.001
"""Pauses in which the screen gets the interpreter."""


class IntervalSource(Protocol):
    """Where intervals of a range come from: what is kept of a live host, or a recording."""

    def between(self, start_ns: int, end_ns: int) -> Iterator[KeptInterval]:
        """Intervals within a range of wall time, oldest first."""


class CompareRequest(Struct, frozen=True):
    """What to compare; equal ones have equal results."""

    a: Part
    b: Part
    options: CompareOptions
    tables: tuple[str, ...]
    now_ns: int
    """End of a part that goes on."""
    live: bool

    @property
    def subject(self) -> object:
        """What does not change while its parts grow."""
        parts = tuple(part.key if isinstance(part, TimePart) else part.text for part in (self.a, self.b))
        return parts, self.options, self.tables

    def resolved(self, part: Part) -> Part:
        """Give a part that goes on its present end."""
        return replace(part, end_ns=self.now_ns) if isinstance(part, TimePart) and part.end_ns is None else part


class Compared(Struct, frozen=True, eq=False):
    """Result of a request: a comparison, or why there is none."""

    request: CompareRequest
    comparison: Comparison | None
    problem: str = ""
    left_out: tuple[str, ...] = ()
    """Tables with too many rows."""


class _Kept(Struct, eq=False):
    """What was collected of a part so far."""

    collected: CollectedIntervals
    upto_ns: int
    left_out: tuple[str, ...] = ()


class CompareWork:
    """Computes the newest request in a thread of its own; requests that came in between are left out."""

    def __init__(self, source: IntervalSource, changed: Callable[[], object], replayed: Path | None = None) -> None:
        self._source, self._replayed = source, replayed
        self._changed = changed
        """Called from the thread when there is a result."""
        self._lock = threading.Lock()
        self._newest = NewestWork("lunscope-compare")
        self._result: Compared | None = None
        self._asked: CompareRequest | None = None
        self._closed = False
        self._hurry = threading.Event()
        """Set when the screen asks for something else."""
        self._kept: OrderedDict[object, _Kept] = OrderedDict()
        self._sides: OrderedDict[object, Side] = OrderedDict()

    def of(self, request: CompareRequest) -> Compared | None:
        """Return the newest result, which may be of an earlier request; never blocks."""
        with self._lock:
            if request != self._asked and not self._closed:
                if self._asked is None or request.subject != self._asked.subject:
                    self._hurry.set()
                self._asked = request
                self._newest.request(functools.partial(self._compute, request))
            return self._result

    @property
    def is_busy(self) -> bool:
        """Whether a newer result is on its way."""
        return self._newest.is_busy

    def close(self) -> None:
        """Begin no further work, and leave the present one."""
        with self._lock:
            self._closed = True
        self._newest.forget()
        self._hurry.set()

    def _compute(self, request: CompareRequest) -> None:
        with self._lock:
            if not (self._closed or self._newest.is_overtaken):
                self._hurry.clear()
        began_s = time.monotonic()
        result = self._computed(request)
        with self._lock:
            if self._closed:
                return
            self._result = result
        self._changed()
        self._hurry.wait(min(_REST * (time.monotonic() - began_s), _MOST_REST_S))

    def _computed(self, request: CompareRequest) -> Compared:
        try:
            (a, out_a), (b, out_b) = (
                self._side(request.resolved(part), part, request) for part in (request.a, request.b)
            )
            require_apart(a, b, same_file=self._same_file(request))
            left_out = tuple(dict.fromkeys((*out_a, *out_b)))
            return Compared(request, compare(a, b, request.options), left_out=left_out)
        except LunscopeError as error:
            return Compared(request, None, str(error))
        except Exception as error:
            return Compared(request, None, f"cannot be compared: {type(error).__name__}: {error}")

    def _same_file(self, request: CompareRequest) -> bool:
        """Whether both parts are of one recording; parts of the time are of the one that is replayed."""
        first, second = (
            PartText.parse(part.text).path if isinstance(part, FilePart) else self._replayed
            for part in (request.a, request.b)
        )
        return first is second or (first is not None and second is not None and first.samefile(second))

    def _side(self, part: Part, open_part: Part, request: CompareRequest) -> tuple[Side, tuple[str, ...]]:
        if isinstance(part, FilePart):
            return self._file_side(part, request), ()
        kept = self._collected(part, open_part, request)
        collected = kept.collected
        if collected.frame is None:
            grows = isinstance(open_part, TimePart) and open_part.end_ns is None
            fate = "no whole interval yet" if grows else "too short, it holds no whole interval"
            raise UsageError(f"{part.title}: {fate}")
        assert part.end_ns is not None, "resolved"
        side = Side(
            part.title,
            "recording",
            collected.rows(growing=request.live),
            collected.intervals,
            collected.interval_s,
            part.start_ns,
            part.end_ns,
            tier=collected.frame.topology.host.tier,
            growing=request.live,
        )
        return side, kept.left_out

    def _file_side(self, part: FilePart, request: CompareRequest) -> Side:
        """Read a file once, unless it still grows."""
        key = (part.text, request.options.fields, request.options.every, request.tables)
        side = self._sides.get(key)
        if side is None or side.growing:
            side = self._sides[key] = open_side(part.text, request.options, request.tables)
            if len(self._sides) > _MOST_KEPT:
                self._sides.popitem(last=False)
        return side

    def _collected(self, part: TimePart, open_part: Part, request: CompareRequest) -> _Kept:
        """Collect what is new of a part since it was last asked for."""
        assert isinstance(open_part, TimePart), "as the resolved part"
        assert part.end_ns is not None, "resolved"
        fields = {table: wanted_fields(table, request.options) for table in request.tables}
        end_ns = open_part.end_ns if open_part.kind == "typed" else None
        key = (open_part.key, end_ns, request.options.fields, request.options.every, request.tables)
        kept = self._kept.get(key)
        if kept is None or kept.upto_ns > part.end_ns:
            kept = self._kept[key] = _Kept(CollectedIntervals(fields), part.start_ns)
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        alone = len(request.tables) == 1
        for number, interval in enumerate(self._source.between(kept.upto_ns, part.end_ns)):
            large = () if alone else _large_tables(interval, fields)
            kept.left_out = tuple(dict.fromkeys((*kept.left_out, *large)))
            frame = interval.frame
            if large:
                frame = replace(frame, tables={k: table for k, table in frame.tables.items() if k not in large})
            kept.collected.add(frame, interval.histograms)
            kept.upto_ns = interval.end_ns
            if number % _BREATH_EVERY == 0:
                time.sleep(_BREATH_S)
        return kept


def _large_tables(interval: KeptInterval, tables: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(
        name for name, table in interval.frame.tables.items() if name in tables and len(table.rows) > MOST_ROWS
    )
