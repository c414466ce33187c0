"""The file of an isolation curve: a line of JSON for each point, read to go on after a crash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.isolation.events import point_document, read_point
from engine.isolation.plan import IsolationPlan
from engine.isolation.study import IsolationPoint
from engine.sweep.line_file import KeptLines, parsed

SCHEMA = "lunscope.isolation-points/1"
_POINT = "point"


class PointFile(KeptLines):
    """Points of one curve on disk; the owner appends, nobody else writes."""

    def __init__(self, path: Path, plan: IsolationPlan) -> None:
        super().__init__(path, SCHEMA, plan.identity)
        self.done: tuple[IsolationPoint, ...] = ()
        """Read from it, in the order they were measured."""

    def read(self) -> None:
        """Read the points.

        Raises:
            UsageError: a line is damaged.
        """
        self.done = tuple(self._points())

    def append(self, point: IsolationPoint) -> None:
        """Write a point, and make sure that it is on the disk.

        Raises:
            LunscopeError: it cannot be written.
        """
        self._file.append({_POINT: point_document(point)})

    def _points(self) -> Iterator[IsolationPoint]:
        for number, line in enumerate(self._file.lines, start=1):
            point = read_point(parsed(line).get(_POINT))
            if point is None:
                raise self._file.damaged(number)
            yield point


def has_end(points: Sequence[IsolationPoint]) -> bool:
    """Whether the last of them is the victim alone once more."""
    return len(points) > 1 and points[-1].aggressor is None


def in_order(points: Sequence[IsolationPoint]) -> tuple[IsolationPoint, ...]:
    """Leave out the victim alone but for the first and the last point: after an earlier end others were measured."""
    ends = (0, len(points) - 1)
    return tuple(point for at, point in enumerate(points) if point.aggressor is not None or at in ends)
