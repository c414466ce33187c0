"""Which paths may be compared: usable ones of one LUN and one access state."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from collectors.derive.growth import Values
from collectors.model import Rows
from collectors.topology.graph import Graph

_EVEN_POLICIES = ("round-robin", "queue-length", "queue-depth")
"""Selectors that spread I/Os evenly over paths of one kind; by others (service-time, numa) a share says nothing."""

Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Peers:
    """Rows of a "paths" table that may be compared, by group; one object as long as rows and graph stay."""

    at: Places
    group: Places
    """Group of each of `at`."""
    size: Values
    """Paths of each group, and below whether its policy spreads I/Os evenly."""
    even: NDArray[np.bool_]
    rows: int
    """Rows of the table."""

    def sums(self, values: Values) -> Values:
        """For each of `at` the sum over its group."""
        return np.bincount(self.group, values, minlength=len(self.size)).astype(np.float64)[self.group]

    def spread(self, values: NDArray[np.float64] | NDArray[np.bool_]) -> Values:
        """Put values of `at` in their rows of the table, NaN in all others."""
        spread = np.full(self.rows, np.nan)
        spread[self.at] = values
        return spread


@lru_cache(maxsize=4)
def peers_of(rows: Rows, graph: Graph) -> Peers:
    """Group the rows of a "paths" table; a path without a peer is left out."""
    groups: dict[tuple[str, str, int | None], list[int]] = {}
    for path in graph.paths:
        if path.usable and path.key in rows.positions:
            groups.setdefault((path.lun, path.access, path.group), []).append(rows.positions[path.key])
    policies = {lun.key: lun.policy for lun in graph.luns}
    several = [(lun, members) for (lun, _, _), members in groups.items() if len(members) > 1]
    sizes = [len(members) for _, members in several]
    return Peers(
        at=np.array([row for _, members in several for row in members], np.intp),
        group=np.repeat(np.arange(len(several)), sizes),
        size=np.array(sizes, np.float64),
        even=np.array([policies.get(lun, "") in _EVEN_POLICIES for lun, _ in several], np.bool_),
        rows=len(rows),
    )
