"""What the operator chose to look at: whose latencies, which part of them, which I/Os."""

from __future__ import annotations

from dataclasses import dataclass

from collectors.latency.subject import Direction, LatencySubject, Part, parts_of, series_of
from collectors.latency.ticks import LatencyTicks


@dataclass(slots=True)
class LatencyChoice:
    """One owner, the latency screen; a part that a subject does not have gives way to one it has."""

    subject: LatencySubject | None = None
    part: Part | None = None
    direction: Direction = Direction.BOTH

    def series(self, ticks: LatencyTicks | None) -> tuple[str, ...]:
        """Series to add up; none where there is nothing of that kind."""
        offered = () if ticks is None else parts_of(ticks.series)
        if ticks is None or not offered:
            return ()
        if self.part not in offered:
            self.part = Part.SERVICE if Part.SERVICE in offered else offered[0]
        return series_of(ticks.series, self.part, self.direction)

    def next_direction(self) -> None:
        """Take the next of both, reads, writes."""
        every = tuple(Direction)
        self.direction = every[(every.index(self.direction) + 1) % len(every)]

    def next_part(self, ticks: LatencyTicks | None) -> bool:
        """Take the next part the subject has; whether there is another."""
        offered = () if ticks is None else parts_of(ticks.series)
        if self.part not in offered or len(offered) < 2:
            return False
        self.part = offered[(offered.index(self.part) + 1) % len(offered)]
        return True

    def includes(self, source: str, key: str) -> bool:
        """Whether a row is among those that are followed."""
        subject = self.subject
        return subject is not None and subject.source == source and (not subject.keys or key in subject.keys)
