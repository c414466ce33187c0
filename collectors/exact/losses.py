"""What exact time has missed, as one row and in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from collectors.model import MISSING, Rows, Table
from collectors.tables.block.trace_schema import LOST_SHARE, TRACER
from engine.events import Event, EventKind

TELL_EVERY_NS = 60_000_000_000
TELL_SHARE = 0.001
"""Of the I/Os traced in a minute: losses below it change no figure that anyone reads."""

_ROWS = Rows(("tracer",), ("tracer",))
_WORDS = {
    "table_full": "not tracked (table full)",
    "unseen": "issue missed",
    "stale": "completion missed",
    "healed": "completion missed, found ended later",
    "untracked_devices": "devices not tracked (table full)",
}
"""Losses a person is told of. What the kernel skipped one copy of a program for the other one mostly saw."""


_SAVED_WORDS = {
    "recursion_misses": "runs of a program the kernel skipped",
    "rescued": "I/Os the second copy of the program saw instead",
    "series_without_histogram": "series of devices without percentiles",
}


def loss_lines(losses: Mapping[str, int]) -> Iterator[str]:
    """Yield every count since exact time began with its meaning, also where it is 0."""
    for name, words in (_WORDS | _SAVED_WORDS).items():
        if name in losses:
            yield f"{losses[name]:>12,}  {words}"


def tracer_table(started_ns: int, clock_ns: int, losses: Mapping[str, int], *, tag_wait: bool) -> Table:
    """Make the one row of TRACER."""
    known = {"started_ns": started_ns, "clock_ns": clock_ns, "tag_wait_on": int(tag_wait)} | dict(losses)
    values = [[known.get(column.id, int(MISSING)) for column in TRACER.columns]]
    return Table(TRACER, _ROWS, np.array(values, np.uint64))


class LossReporter:
    """Tells losses that matter, at most once a minute."""

    def __init__(self) -> None:
        self._told: dict[str, int] | None = None
        self._ios = 0
        self._quiet_until_ns = 0

    def report(self, losses: Mapping[str, int], ios: int, now_ns: int) -> tuple[Event, ...]:
        """Compare with what was told last; the event to tell, if any.

        What is lost before the first call is not told: I/Os that were under way when the programs were attached.

        Args:
            losses: since the start, by name.
            ios: I/Os traced since the start by the devices that are there; fewer than before when one has left.
            now_ns: CLOCK_MONOTONIC.
        """
        if now_ns < self._quiet_until_ns:
            return ()
        now = {name: losses.get(name, 0) for name in _WORDS}
        before, self._told = self._told or now, now
        since, self._ios = ios - self._ios, ios
        new = {name: count - before[name] for name, count in now.items()}
        devices_left = since < 0
        if devices_left or sum(new.values()) <= TELL_SHARE * since:
            return ()
        self._quiet_until_ns = now_ns + TELL_EVERY_NS
        lost = "; ".join(f"{count:,} {_WORDS[name]}" for name, count in new.items() if count > 0)
        text = f"exact time: of {since + sum(new.values()):,} I/Os {lost}"
        if sum(new.values()) > LOST_SHARE * since:
            text += "; while it loses so many, figures are those of the next tier"
        return (Event.now(EventKind.MONITOR, text, **{name: count for name, count in new.items() if count > 0}),)
