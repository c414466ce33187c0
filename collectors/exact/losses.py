"""Losses of exact time, as one row and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from collectors.model import MISSING, Rows, Table
from collectors.tables.block.schema import LOST_SHARE, TRACER
from engine.events import Event, EventKind

TELL_EVERY_NS = 60_000_000_000
TELL_SHARE = 0.001
"""Share of the I/Os traced in a minute; smaller losses do not change any figure visibly."""

_ROWS = Rows(("tracer",), ("tracer",))
_WORDS = {
    "table_full": "not tracked (table full)",
    "unseen": "missed at issue",
    "stale": "missed at completion",
    "healed": "missed at completion, found ended later",
    "untracked_devices": "devices not tracked (table full)",
}
"""Losses that are reported. The second copy of a program catches most runs that the kernel skips."""


_SAVED_WORDS = {
    "recursion_misses": "runs of a program the kernel skipped",
    "rescued": "I/Os the second copy of the program saw instead",
    "series_without_histogram": "ranges of latencies without room for their counts (no percentiles)",
}


def loss_lines(losses: Mapping[str, int]) -> Iterator[str]:
    """Yield every count since exact time began with its meaning, including counts of 0."""
    for name, words in (_WORDS | _SAVED_WORDS).items():
        if name in losses:
            yield f"{losses[name]:>12,}  {words}"


def loss_words(losses: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield what each loss means, with its count; what the second copies of the programs saved is none."""
    for name, words in _WORDS.items():
        if name in losses:
            yield words, losses[name]


def tracer_table(started_ns: int, clock_ns: int, losses: Mapping[str, int], tag_wait: int) -> Table:
    """Make the one row of TRACER; `tag_wait` are TAG_WAITS_TIMED and NO_TAG_WAITS."""
    known = {"started_ns": started_ns, "clock_ns": clock_ns, "tag_wait_on": tag_wait} | dict(losses)
    values = [[known.get(column.id, int(MISSING)) for column in TRACER.columns]]
    return Table(TRACER, _ROWS, np.array(values, np.uint64))


class LossReporter:
    """Reports relevant losses, at most once a minute."""

    def __init__(self) -> None:
        self._reported: dict[str, int] | None = None
        self._ios = 0
        self._quiet_until_ns = 0

    def report(self, losses: Mapping[str, int], ios: int, now_ns: int) -> tuple[Event, ...]:
        """Compare with the last report; return the event to report, if any.

        Losses before the first call are not reported: I/Os in flight when the programs were attached.

        Args:
            losses: counts since the start, by name.
            ios: I/Os traced since the start on present devices; fewer than before when a device was removed.
            now_ns: CLOCK_MONOTONIC.
        """
        if now_ns < self._quiet_until_ns:
            return ()
        now = {name: losses.get(name, 0) for name in _WORDS}
        before, self._reported = self._reported or now, now
        since, self._ios = ios - self._ios, ios
        new = {name: count - before[name] for name, count in now.items()}
        devices_left = since < 0
        if devices_left or sum(new.values()) <= TELL_SHARE * since:
            return ()
        self._quiet_until_ns = now_ns + TELL_EVERY_NS
        lost = "; ".join(f"{count:,} {_WORDS[name]}" for name, count in new.items() if count > 0)
        text = f"exact time: of {since + sum(new.values()):,} I/Os {lost}"
        if sum(new.values()) > LOST_SHARE * since:
            text += "; while it loses so many, figures but busy time and maxima are those of the next tier"
        return (Event.now(EventKind.MONITOR, text, **{name: count for name, count in new.items() if count > 0}),)
