"""Paths whose I/O contradicts their state: what completes I/O is not offline."""

from __future__ import annotations

from functools import lru_cache

from collectors.model import MISSING, Table
from collectors.topology.graph import Graph

_COMPLETED = ("reads", "writes")


def contradicted_paths(before: Table | None, now: Table, graph: Graph) -> frozenset[str]:
    """Names of the paths that the graph calls unusable and that completed reads or writes between two samples.

    Args:
        before: DISK table of the sample before, None at a start.
        now: DISK table of this one.
        graph: as it is known now.
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
