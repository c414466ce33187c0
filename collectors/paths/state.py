"""State of a path as one word and a level to sort and filter by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from collectors.graph import USABLE_ACCESS, USABLE_STATES, Graph, Path
from collectors.model import MISSING, Rows, Table
from engine.text import safe_text

_COMPLETED = ("reads", "writes")


def contradicted_paths(before: Table | None, now: Table, graph: Graph) -> frozenset[str]:
    """Names of the paths that are unusable in the graph but completed reads or writes between two samples.

    Args:
        before: DISK table of the previous sample, None at a start.
        now: DISK table of this one.
        graph: latest device graph.
    """
    if before is None:
        return frozenset()
    columns = [now.schema.index(name) for name in _COMPLETED]
    found = set()
    for key, name in _unusable(graph):
        old, new = before.rows.positions.get(key), now.rows.positions.get(key)
        if old is None or new is None:
            continue
        values = zip(before.values[old, columns], now.values[new, columns], strict=True)
        if any(MISSING not in {was, is_} and is_ > was for was, is_ in values):
            found.add(name)
    return frozenset(found)


@lru_cache(maxsize=2)
def _unusable(graph: Graph) -> tuple[tuple[str, str], ...]:
    return tuple((path.key, path.name) for path in graph.paths if not path.usable)


_SECOND_CHOICE = frozenset({"non-optimized", "active/non-optimized"})
_BY_DESIGN = frozenset({"standby", "lba-dependent", "active/lba-dependent", "inaccessible"})
"""ALUA and ANA states in which a healthy controller refuses I/O because its partner controller serves it."""


class PathLevel(IntEnum):
    """Health of a path; larger is worse."""

    ACTIVE = 0
    SECONDARY = 1
    """Takes I/O, but is not preferred by the storage."""
    STANDBY = 2
    """Takes no I/O, as intended."""
    MARGINAL = 3
    """Fails intermittently, and is used only if no other path works."""
    DOWN = 4


class PathState(NamedTuple):
    """State of one path."""

    level: PathLevel
    word: str
    """Name used by the kernel or the map, safe to print; empty if unknown."""


def state_of(path: Path) -> PathState:
    """Return the worst of the states of the map, the device or controller, and the access state."""
    if path.map_state == "failed":
        return PathState(PathLevel.DOWN, "failed")
    if path.state not in USABLE_STATES:
        return PathState(PathLevel.DOWN, safe_text(path.state))
    access = path.access.removeprefix("active/")
    if path.access not in USABLE_ACCESS:
        return PathState(PathLevel.STANDBY if path.access in _BY_DESIGN else PathLevel.DOWN, safe_text(access))
    if path.marginal:
        return PathState(PathLevel.MARGINAL, "marginal")
    if path.access in _SECOND_CHOICE:
        return PathState(PathLevel.SECONDARY, access)
    known = path.state or path.access or path.map_state
    return PathState(PathLevel.ACTIVE, "active" if known else "")


def access_mix(paths: Iterable[Path]) -> str:
    """Count usable paths by access state: "3 optimized + 1 non-optimized"; empty if all are equal."""
    states = (path.access.removeprefix("active/") for path in paths if path.usable)
    counts = Counter(states)
    return " + ".join(f"{count} {safe_text(access) or 'without access state'}" for access, count in _ordered(counts))


def _ordered(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda one: one[0] != "optimized") if len(counts) > 1 else []


@lru_cache(maxsize=4)
def path_states(rows: Rows, graph: Graph) -> tuple[PathState, ...]:
    """State of the path of each row; thousands, so cached by the pair of objects."""
    found = {path.key: state_of(path) for path in graph.paths}
    unknown = PathState(PathLevel.ACTIVE, "")
    return tuple(found.get(key, unknown) for key in rows.keys)
