"""Elements of the device graph by key; cached per graph."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from collectors.graph import Graph, Path, Port


@lru_cache(maxsize=4)
def paths_of(graph: Graph) -> Mapping[str, Path]:
    """Paths by key."""
    return {path.key: path for path in graph.paths}


@lru_cache(maxsize=4)
def ports_of(graph: Graph) -> Mapping[str, Port]:
    """HBA ports by key."""
    return {port.key: port for port in graph.ports}


@lru_cache(maxsize=4)
def policies_of(graph: Graph) -> Mapping[str, str]:
    """Path policy of each LUN by its key."""
    return {lun.key: lun.policy for lun in graph.luns}
