"""The effect of the last knob turn: a time window before it against one of equal length after it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from collectors.derive.percentiles import RowCells, minimum_ios, percentiles_ns
from engine.events import Event, EventKind
from engine.job.describe import KnobChange
from engine.job.knobs import KNOBS
from tui.load.load_ticks import SECOND_NS, LoadTick, opened_at, settled_ticks, unbroken_end, unbroken_start

LONGEST_WINDOW_S = 60
"""Windows grow with time up to this, adjacent to the turn."""
SHORTEST_WINDOW_S = 3.0
"""Shorter windows give no percentage: a pause of the device or a full cache would decide it."""
BASE_S, OPENING_S = LONGEST_WINDOW_S + 5, LONGEST_WINDOW_S + 20
"""How far before and after a turn intervals are needed, including excluded ones."""
JOINED_S = BASE_S + OPENING_S
"""Turns further apart than this are compared separately."""
MOST_JOINED = 16
LEVEL_PERCENT = 99.0
FEWEST_IOS = minimum_ios(LEVEL_PERCENT)
"""Least I/Os in each window for a change of rate or mean in percent."""
_ALIKE = 1.01
"""Windows whose lengths differ by less count as equal, as intervals vary a little."""
_NS_PER_MS = 1e6


class Level(Struct, frozen=True):
    """Figures of the load in one window; NaN where nothing was measured, or too few I/Os."""

    length_s: float = 0.0
    ios: int = 0
    iops: float = math.nan
    mean_ms: float = math.nan
    p99_ms: float = math.nan
    """Over all I/Os of the window."""
    max_ms: float = math.nan


class Effect(Struct, frozen=True):
    """Before and after the last turn; `turned_ns` (CLOCK_MONOTONIC) is None before the first.

    Turns with too little time between them for a window are compared as one, from before the first to after the last.
    """

    text: str = ""
    turned_ns: int | None = None
    before: Level = Level()
    after: Level = Level()
    ended: bool = False
    """Whether the load is over."""

    @property
    def is_long_enough(self) -> bool:
        """Whether both windows are long enough for changes in percent."""
        return _is_long(min(self.before.length_s, self.after.length_s))


def has_enough_ios(effect: Effect, times: int = 1) -> bool:
    """Whether both windows hold enough I/Os for a change in percent, `times` as many for a percentile."""
    return min(effect.before.ios, effect.after.ios) >= FEWEST_IOS * times


def change_pct(before: float, after: float) -> float:
    """Change in percent; NaN without a base."""
    return (after / before - 1) * 100 if before > 0 and math.isfinite(before) else math.nan


def last_effect(ticks: Sequence[LoadTick], events: Sequence[Event], now_ns: int) -> Effect:
    """Compare around the newest turn up to a time; a pure function, so that a replay shows what the live screen did.

    The window before a turn begins at the previous turn at the earliest, and both windows exclude the time in which the
    load settled to new knobs.

    Args:
        ticks: intervals of the load by time, at least those around the turn.
        events: all events; knob turns among them name knob and time.
        now_ns: CLOCK_MONOTONIC of the time shown; later data are ignored.
    """
    past = [tick for tick in ticks if tick.end_ns <= now_ns]
    if not past:
        return Effect()
    run = next((tick.run for tick in reversed(past) if tick.run), "")
    ended = not past[-1].run
    mine = _of_run(past, run)
    if not mine:
        return Effect()
    turns = [event for event in events if event.kind is EventKind.KNOB and event.monotonic_ns <= now_ns]
    epoch = mine[-1].epoch
    opened_ns = opened_at(mine, epoch, turns)
    if epoch == 0 or opened_ns is None:
        # Only intervals around turns are kept of a time long past: the last of them is not the time asked for.
        if past[-1].end_ns < now_ns and not ended:
            return Effect()
        own = unbroken_end(settled_ticks(mine, epoch, opened_ns))
        return Effect(after=_level(_newest(own, LONGEST_WINDOW_S * SECOND_NS * _ALIKE)), ended=ended)
    opening = [tick for tick in mine if tick.end_ns <= opened_ns + OPENING_S * SECOND_NS]
    first, base = _base(mine, epoch, turns)
    before, after = equal_windows(base, unbroken_start(settled_ticks(opening, epoch, opened_ns)))
    joined = [event for event in turns if _opened_by(event, first, epoch) and event.monotonic_ns >= mine[0].start_ns]
    return Effect(_turns_text(joined, epoch), opened_ns, _level(before), _level(after), ended)


def equal_windows(
    before: Sequence[LoadTick], after: Sequence[LoadTick]
) -> tuple[Sequence[LoadTick], Sequence[LoadTick]]:
    """Cut both to the same length, adjacent to the turn.

    If one is empty, the other is kept whole.
    """
    limit_ns = LONGEST_WINDOW_S * SECOND_NS * _ALIKE
    before, after = _newest(before, limit_ns), _oldest(after, limit_ns)
    while before and after and not _alike(_length_ns(before), _length_ns(after)):
        limit_ns = min(_length_ns(before), _length_ns(after)) * _ALIKE
        before, after = _newest(before, limit_ns), _oldest(after, limit_ns)
    return before, after


def _of_run(past: Sequence[LoadTick], run: str) -> list[LoadTick]:
    """Intervals of one run, without the partial last one."""
    mine = [tick for tick in past if tick.run == run]
    over = next((position for position, tick in enumerate(mine) if tick.is_last), len(mine))
    if over and not past[-1].run and past[-1].start_ns == mine[over - 1].end_ns:
        over -= 1
    return mine[:over]


def _base(mine: Sequence[LoadTick], epoch: int, turns: Sequence[Event]) -> tuple[int, Sequence[LoadTick]]:
    """Find the first of the turns that are compared as one: the epoch it opened, and the intervals before it."""
    first, base = epoch, _before(mine, epoch, turns)
    for _ in range(MOST_JOINED):
        earlier = [tick for tick in mine if tick.epoch < first]
        if not earlier or not earlier[-1].epoch or _is_long(_length_ns(base) / SECOND_NS):
            break
        opened_ns = opened_at(mine, earlier[-1].epoch, turns)
        if opened_ns is None or earlier[-1].end_ns - opened_ns > JOINED_S * SECOND_NS:
            break
        further = _before(mine, earlier[-1].epoch, turns)
        if not further:
            break
        first, base = earlier[-1].epoch, further
    return (base[-1].epoch + 1 if base else first), base


def _before(mine: Sequence[LoadTick], epoch: int, turns: Sequence[Event]) -> Sequence[LoadTick]:
    """Settled intervals of the previous epoch, up to the turn."""
    count = sum(tick.epoch < epoch for tick in mine)
    if not count or count == len(mine) or mine[count].start_ns != mine[count - 1].end_ns:
        return ()
    last = mine[count - 1]
    stretch = [tick for tick in mine[:count] if tick.start_ns >= last.end_ns - BASE_S * SECOND_NS]
    own = unbroken_end(settled_ticks(stretch, last.epoch, opened_at(mine, last.epoch, turns)))
    return own if own and own[-1] is last else ()


def _opened_by(event: Event, first: int, last: int) -> bool:
    epoch = event.data.get("epoch")
    return isinstance(epoch, int) and first <= epoch <= last


def changes_text(texts: Sequence[str]) -> str:
    """Describe several changes of one turn, the last one by name."""
    return texts[-1] if len(texts) == 1 else f"{texts[-1]} and {len(texts) - 1} more"


def _turns_text(turns: Sequence[Event], epoch: int) -> str:
    """Describe the turns; several turns of one knob read as one."""
    if not turns:
        return f"knobs turned (epoch {epoch})"
    last = turns[-1]
    if len(turns) == 1:
        return last.text
    knob, begin, end = last.data.get("knob"), turns[0].data.get("from"), last.data.get("to")
    if knob is None or any(event.data.get("knob") != knob for event in turns):
        return changes_text([event.text for event in turns])
    known = KNOBS.get(str(knob))
    text = KnobChange(str(knob), str(knob) if known is None else known.name, begin, end).text
    return f"{text} in {len(turns)} turns" if begin == end else text


def _newest(ticks: Sequence[LoadTick], limit_ns: float) -> Sequence[LoadTick]:
    """Return the last intervals that fit into a length."""
    kept = len(ticks)
    while kept and ticks[-1].end_ns - ticks[kept - 1].start_ns <= limit_ns:
        kept -= 1
    return ticks[kept:]


def _oldest(ticks: Sequence[LoadTick], limit_ns: float) -> Sequence[LoadTick]:
    """Return the first intervals that fit into a length."""
    kept = 0
    while kept < len(ticks) and ticks[kept].end_ns - ticks[0].start_ns <= limit_ns:
        kept += 1
    return ticks[:kept]


def _length_ns(ticks: Sequence[LoadTick]) -> int:
    return ticks[-1].end_ns - ticks[0].start_ns if ticks else 0


def _is_long(length_s: float) -> bool:
    """Whether a window is long enough for changes in percent; three intervals of a second vary a little, too."""
    return length_s * _ALIKE >= SHORTEST_WINDOW_S


def _alike(first_ns: int, second_ns: int) -> bool:
    return max(first_ns, second_ns) <= min(first_ns, second_ns) * _ALIKE


def _level(ticks: Sequence[LoadTick]) -> Level:
    length_s, ios = _length_ns(ticks) / SECOND_NS, sum(tick.ios for tick in ticks)
    if not length_s:
        return Level()
    if not ios:
        return Level(length_s, 0, 0.0)
    max_ms = max(tick.peak_ns for tick in ticks) / _NS_PER_MS
    mean_ms = sum(tick.latency_ns for tick in ticks) / ios / _NS_PER_MS
    return Level(length_s, ios, ios / length_s, mean_ms, min(_percentile_ms(ticks), max_ms), max_ms)


def _percentile_ms(ticks: Sequence[LoadTick]) -> float:
    """Percentile; NaN with too few I/Os."""
    bucket = np.concatenate([tick.bucket for tick in ticks])
    count = np.concatenate([tick.count for tick in ticks])
    cells = RowCells(ticks[0].scale, np.zeros(len(bucket), np.uint32), bucket, count)
    return float(percentiles_ns(cells, 1, (LEVEL_PERCENT,))[0, 0]) / _NS_PER_MS
