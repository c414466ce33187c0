"""The device graph of a topology as JSON."""

from __future__ import annotations

from typing import Any

from collectors.session.columns import columns_of, records_of
from collectors.session.format import DamageError
from collectors.topology.graph import Graph, Layer, Lun, Mount, Path, Port, Tape, TargetPort


def graph_to_json(graph: Graph) -> dict[str, Any]:
    """Return each list of the graph by columns."""
    return {
        "ports": columns_of(Port, graph.ports),
        "targets": columns_of(TargetPort, graph.targets),
        "luns": columns_of(Lun, graph.luns),
        "paths": columns_of(Path, graph.paths),
        "layers": columns_of(Layer, graph.layers),
        "mounts": columns_of(Mount, graph.mounts),
        "notices": list(graph.notices),
        "tapes": columns_of(Tape, graph.tapes),
    }


def graph_from_json(value: object) -> Graph:
    """Undo `graph_to_json`; what is not there is empty.

    Raises:
        DamageError: a part is not what it should be.
    """
    if not isinstance(value, dict):
        raise DamageError("not a graph")
    notices = value.get("notices", [])
    if not isinstance(notices, list) or not all(isinstance(notice, str) for notice in notices):
        raise DamageError("not a graph")
    return Graph(
        ports=tuple(records_of(Port, value.get("ports", _EMPTY[Port]))),
        targets=tuple(records_of(TargetPort, value.get("targets", _EMPTY[TargetPort]))),
        luns=tuple(records_of(Lun, value.get("luns", _EMPTY[Lun]))),
        paths=tuple(records_of(Path, value.get("paths", _EMPTY[Path]))),
        layers=tuple(records_of(Layer, value.get("layers", _EMPTY[Layer]))),
        mounts=tuple(records_of(Mount, value.get("mounts", _EMPTY[Mount]))),
        notices=tuple(notices),
        tapes=tuple(records_of(Tape, value.get("tapes", _EMPTY[Tape]))),
    )


_EMPTY = {cls: columns_of(cls, ()) for cls in (Port, TargetPort, Lun, Path, Layer, Mount, Tape)}
