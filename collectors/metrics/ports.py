"""Counters of HBA ports: the sums of their paths, busy time and errors of the port itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from collectors.derive.counter_deltas import positions
from collectors.metrics.family import (
    ColumnFamily,
    Family,
    MetricPart,
    MetricPoint,
    Values,
    counter,
    gauge,
    label,
    labels,
    of_columns,
)
from collectors.metrics.running_sums import PortSums
from collectors.metrics.view import MetricLevel, MetricView
from collectors.model import Rows
from collectors.tables.block.schema import PORT_ERRORS, TRACE_GROUP, group_key

_NS = 1_000_000_000
_COUNTED = (
    ("reads_completed", "Reads completed", "reads", 1.0),
    ("read_bytes", "Bytes read", "read_sectors", 512.0),
    ("read_time_seconds", "Seconds spent by all reads", "read_ms", 0.001),
    ("writes_completed", "Writes completed", "writes", 1.0),
    ("written_bytes", "Bytes written", "write_sectors", 512.0),
    ("write_time_seconds", "Seconds spent by all writes", "write_ms", 0.001),
)
_Sums = tuple[tuple[Family, str, float], ...]


def _sums(name: str, way: str) -> _Sums:
    """Make the families of sums of a kind of port, whose label has the same name."""
    since = f"{way} since this process began."
    return tuple(
        (counter(f"lunscope_{name}_{each}_total", f"{what} {since}", name), column, factor)
        for each, what, column, factor in _COUNTED
    )


def _busy(name: str, what: str) -> ColumnFamily:
    help_ = f"Time with at least one I/O in the driver on any path {what}, by exact time since it was attached."
    return ColumnFamily(counter(f"lunscope_{name}_busy_seconds_total", help_, name), (MetricPart("busy_ns"),), per=_NS)


_SUMS, _BUSY = _sums("port", "through the port"), _busy("port", "of the port")
_TARGET_SUMS, _TARGET_BUSY = (
    _sums("target_port", "over the paths to the target port"),
    _busy("target_port", "to the target port"),
)
_ERRORS = tuple(
    ColumnFamily(counter(f"lunscope_port_{name}_total", help_, "port"), (MetricPart(name),))
    for name, help_ in (
        ("command_errors", "Commands that failed, as the driver of the port counts them."),
        ("link_errors", "Losses of link, signal or synchronization."),
        ("frame_errors", "Frames or words received with errors."),
        ("resets", "Resets of the port or controller."),
        ("reconnects", "Connections made again."),
    )
)
_LIMIT = gauge("lunscope_port_queue_limit", "Commands that the port admits at a time.", "port")
_INFO = gauge(
    "lunscope_port_info", "Identity of an HBA port.", "port", "label", "transport", "driver", "address", "speed"
)
_UP = gauge("lunscope_port_state", "State of an HBA port: the present one has 1.", "port", "state")
FAMILIES = (
    *(family for family, _, _ in _SUMS),
    _BUSY.family,
    *(one.family for one in _ERRORS),
    _LIMIT,
    _INFO,
    _UP,
)


def _measure(view: MetricView) -> Iterator[MetricPoint]:
    ports = view.roles.ports
    rendered = {key: label("port", name) for key, name in zip(ports.keys, ports.names, strict=True)}
    if not rendered:
        return
    yield from _of_sums(_SUMS, view.port_sums, rendered)
    keys = tuple(rendered)
    yield from _of_table((_BUSY,), view, TRACE_GROUP.name, [group_key("hba", key) for key in keys], rendered)
    yield from _of_table(_ERRORS, view, PORT_ERRORS.name, keys, rendered)
    yield from _facts(view, ports, view.roles.port_limits.tolist())


def _of_sums(families: _Sums, sums: PortSums, rendered: dict[str, str]) -> Iterator[MetricPoint]:
    for family, quantity, factor in families:
        values = sums.column(quantity)
        known = [(rendered[key], round(value * factor, 3)) for key, value in values.items() if key in rendered]
        if known:
            yield MetricPoint(family, (Values([one for one, _ in known], [value for _, value in known]),))


def _of_table(
    families: tuple[ColumnFamily, ...], view: MetricView, name: str, keys: Sequence[str], rendered: dict[str, str]
) -> Iterator[MetricPoint]:
    table = view.table(name)
    if table is None:
        return
    at = positions(table.rows, keys)
    found = np.flatnonzero(at >= 0)
    texts = list(rendered.values())
    yield from of_columns(families, table, [texts[row] for row in found.tolist()], at[found])


def _facts(view: MetricView, ports: Rows, limits: Sequence[float]) -> Iterator[MetricPoint]:
    limited = [(label("port", name), int(limit)) for name, limit in zip(ports.names, limits, strict=True) if limit > 0]
    if limited:
        yield MetricPoint(_LIMIT, (Values([one for one, _ in limited], [limit for _, limit in limited]),))
    names = dict(zip(ports.keys, ports.names, strict=True))
    known = [(names[port.key], port) for port in view.sample.topology.graph.ports if port.key in names]
    info = [
        labels(
            port=name,
            label=port.label,
            transport=port.transport,
            driver=port.driver,
            address=port.address,
            speed=port.speed,
        )
        for name, port in known
    ]
    if info:
        yield MetricPoint(_INFO, (Values(info, [1] * len(info)),))
    states = [labels(port=name, state=port.state) for name, port in known if port.state]
    if states:
        yield MetricPoint(_UP, (Values(states, [1] * len(states)),))


_TARGET_INFO = gauge(
    "lunscope_target_port_info", "Identity of a target port.", "target_port", "label", "transport", "array"
)


def _measure_targets(view: MetricView) -> Iterator[MetricPoint]:
    targets = [target for target in view.sample.topology.graph.targets if target.key in view.roles.targets.positions]
    rendered = {target.key: label("target_port", target.name) for target in targets}
    if not rendered:
        return
    yield from _of_sums(_TARGET_SUMS, view.target_sums, rendered)
    keys = [group_key("target", key) for key in rendered]
    yield from _of_table((_TARGET_BUSY,), view, TRACE_GROUP.name, keys, rendered)
    info = [
        labels(target_port=target.name, label=target.label, transport=target.transport, array=target.array)
        for target in targets
    ]
    yield MetricPoint(_TARGET_INFO, (Values(info, [1] * len(info)),))


TARGET_LEVEL = MetricLevel(
    "target-ports",
    "counters of target ports",
    (*(family for family, _, _ in _TARGET_SUMS), _TARGET_BUSY.family, _TARGET_INFO),
    _measure_targets,
    of_process=True,
)
PORT_LEVEL = MetricLevel("ports", "counters of HBA ports", FAMILIES, _measure, of_process=True)
