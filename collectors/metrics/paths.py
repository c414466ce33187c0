"""Counters and states of paths, each with its LUN and its HBA port as labels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from collectors.derive.counter_deltas import positions
from collectors.graph import Graph, paths_of, ports_of
from collectors.metrics.disks import DISKSTATS, exact_families, traced
from collectors.metrics.family import (
    ColumnFamily,
    Family,
    MetricPart,
    MetricPoint,
    Values,
    counter,
    gauge,
    labels,
    of_columns,
)
from collectors.metrics.states import DM_PATH_STATE, map_path_states
from collectors.metrics.view import MetricLevel, MetricView
from collectors.model import Rows
from collectors.tables.block.schema import DISK, PATH_ERRORS
from engine.replacing import replace

_LABELS = ("path", "device", "port")
_NS = 1_000_000_000
_OF_KERNEL = ("reads", "read_sectors", "read_ms", "writes", "write_sectors", "write_ms", "in_flight_now", "busy_ms")


def _of_path(one: ColumnFamily) -> ColumnFamily:
    name = one.family.name.replace("node_disk_", "lunscope_path_")
    return replace(one, family=replace(one.family, name=name, label_names=_LABELS))


_KERNEL = tuple(_of_path(one) for one in DISKSTATS if one.parts[0].column in _OF_KERNEL)
_EXACT = (
    *(
        ColumnFamily(
            counter(f"lunscope_path_{stage}_seconds_total", help_, *_LABELS, "operation"),
            tuple(MetricPart(f"{stage}_{operation}_ns", f'operation="{operation}"') for operation in ("read", "write")),
            per=_NS,
        )
        for stage, help_ in (
            ("queue", "Queue time of all I/Os, by exact time since it was attached."),
            ("service", "Service time of all I/Os, by exact time since it was attached."),
        )
    ),
    *exact_families("path", *_LABELS),
)
_ERRORS = tuple(
    ColumnFamily(counter(f"lunscope_path_{name}_total", help_, *_LABELS), (MetricPart(name),))
    for name, help_ in (
        ("errors", "Errors of commands on the path, as its driver counts them."),
        ("timeouts", "Commands that timed out."),
        ("retries", "Commands that were retried."),
        ("failovers", "Commands that were sent again on another path."),
    )
)
USABLE = gauge("lunscope_path_usable", "Whether I/O may be sent down the path, as far as known.", *_LABELS)
STATE = gauge(
    "lunscope_path_state", "State of a path: the present one has 1.", *_LABELS, "state", "access", "map_state"
)
FAMILIES: tuple[Family, ...] = (*(one.family for one in (*_KERNEL, *_EXACT, *_ERRORS)), USABLE, STATE, DM_PATH_STATE)


@lru_cache(maxsize=4)
def _rendered(paths: Rows, graph: Graph) -> tuple[str, ...]:
    """Labels of paths; unique, because a kernel name is one device at a time and the LUN tells reused ones apart."""
    known, ports = paths_of(graph), ports_of(graph)
    luns = {lun.key: lun.name for lun in graph.luns}
    port_names = {key: "+".join(port.members) or port.name for key, port in ports.items()}
    return tuple(
        labels(
            path=name,
            device=luns.get(known[key].lun, known[key].lun) if key in known else "",
            port=port_names.get(known[key].port, "") if key in known else "",
        )
        for key, name in zip(paths.keys, paths.names, strict=True)
    )


def _measure(view: MetricView) -> Iterator[MetricPoint]:
    roles, graph = view.roles, view.sample.topology.graph
    rendered = _rendered(roles.paths, graph)
    yield from of_columns(_KERNEL, view.table(DISK.name), rendered, roles.path_at)
    yield from traced(_EXACT, view, roles.paths, rendered)
    errors = view.table(PATH_ERRORS.name)
    if errors is not None:
        at = positions(errors.rows, roles.paths.keys)
        found = np.flatnonzero(at >= 0)
        yield from of_columns(_ERRORS, errors, [rendered[row] for row in found.tolist()], at[found])
    yield from _states(roles.paths, graph, rendered)
    yield from map_path_states(view)


def _states(paths: Rows, graph: Graph, rendered: tuple[str, ...]) -> Iterator[MetricPoint]:
    known = paths_of(graph)
    found = [(known[key], one) for key, one in zip(paths.keys, rendered, strict=True) if key in known]
    if not found:
        return
    yield MetricPoint(USABLE, (Values([one for _, one in found], [int(path.usable) for path, _ in found]),))
    states = [f"{one},{labels(state=path.state, access=path.access, map_state=path.map_state)}" for path, one in found]
    yield MetricPoint(STATE, (Values(states, [1] * len(states)),))


PATH_LEVEL = MetricLevel("paths", "counters and states of each path", FAMILIES, _measure, default=False)
