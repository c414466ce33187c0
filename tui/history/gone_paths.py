"""Paths that vanished: the kernel keeps no record of a lost path."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from collectors.graph import Graph, Path
from collectors.model import Frame


class GonePath(Struct, frozen=True):
    """A path that the kernel no longer has."""

    path: Path
    since_ns: int
    """Wall time of the first frame without it."""


class GoneThen(Struct, frozen=True):
    """The lost paths of all LUNs from one time on."""

    since_ns: int = 0
    of_luns: Mapping[str, tuple[GonePath, ...]] = field(default_factory=dict)
    count: int = 0

    def of_lun(self, key: str) -> tuple[GonePath, ...]:
        """Lost paths of a LUN."""
        return self.of_luns.get(key, ())

    def __len__(self) -> int:
        """Count the lost paths of all LUNs."""
        return self.count


MOST_CHANGES = 64
"""Changes that can be stepped back; before the earliest of them no path is shown as lost."""


class GonePaths:
    """Compares each device graph with the previous one; a path that returns by the same route is removed.

    LUNs that vanished completely are not included. Seeking back in a recording drops later losses. One thread writes,
    others read: the changes are replaced as a whole.
    """

    def __init__(self) -> None:
        self._graph: Graph | None = None
        self._time_ns = 0
        self._gone: dict[tuple[str, ...], GonePath] = {}
        self._changes: deque[GoneThen] = deque([GoneThen()], MOST_CHANGES)

    def follow(self, frame: Frame) -> None:
        """Compare the next frame; does nothing while the topology is unchanged."""
        went_back, self._time_ns = frame.time_ns < self._time_ns, frame.time_ns
        before, self._graph = self._graph, frame.topology.graph
        if before is None or (before is self._graph and not went_back):
            return
        if went_back:
            self._gone = {route: gone for route, gone in self._gone.items() if gone.since_ns <= frame.time_ns}
        else:
            self._gone |= {_route(path): GonePath(path, frame.time_ns) for path in _lost(before, self._graph)}
        there = {_route(path) for path in self._graph.paths}
        luns = {lun.key for lun in self._graph.luns}
        self._gone = {route: gone for route, gone in self._gone.items() if route not in there and gone.path.lun in luns}
        of_lun: dict[str, tuple[GonePath, ...]] = {}
        for gone in self._gone.values():
            of_lun[gone.path.lun] = (*of_lun.get(gone.path.lun, ()), gone)
        if of_lun != self._changes[-1].of_luns or went_back:
            then = GoneThen(frame.time_ns, of_lun, len(self._gone))
            self._changes = deque([*([] if went_back else self._changes), then], MOST_CHANGES)

    def at(self, time_ns: int) -> GoneThen:
        """Lost paths at a wall time."""
        return next((then for then in reversed(self._changes) if then.since_ns <= time_ns), GoneThen())


def _lost(before: Graph, now: Graph) -> Iterator[Path]:
    keys = {path.key for path in now.paths}
    return (path for path in before.paths if path.key not in keys and path.lun != path.key)


def _route(path: Path) -> tuple[str, ...]:
    """Identify a path by its route, as its device may come back under another name."""
    return path.lun, path.port, path.target, path.address
