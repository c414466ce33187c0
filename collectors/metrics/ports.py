"""Counters of HBA ports: the sums of their paths, busy time and errors of the port itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from collectors.derive.counter_deltas import positions
from collectors.metrics.family import (
    ColumnFamily,
    MetricPart,
    MetricPoint,
    Values,
    counter,
    gauge,
    label,
    labels,
    of_columns,
)
from collectors.metrics.view import MetricLevel, MetricView
from collectors.model import Rows
from collectors.tables.block.schema import PORT_ERRORS, TRACE_GROUP, group_key

_NS = 1_000_000_000
_SINCE = "through the port since this process began."
_SUMS = (
    (counter("lunscope_port_reads_completed_total", f"Reads completed {_SINCE}", "port"), "reads", 1.0),
    (counter("lunscope_port_read_bytes_total", f"Bytes read {_SINCE}", "port"), "read_sectors", 512.0),
    (
        counter("lunscope_port_read_time_seconds_total", f"Seconds spent by all reads {_SINCE}", "port"),
        "read_ms",
        0.001,
    ),
    (counter("lunscope_port_writes_completed_total", f"Writes completed {_SINCE}", "port"), "writes", 1.0),
    (counter("lunscope_port_written_bytes_total", f"Bytes written {_SINCE}", "port"), "write_sectors", 512.0),
    (
        counter("lunscope_port_write_time_seconds_total", f"Seconds spent by all writes {_SINCE}", "port"),
        "write_ms",
        0.001,
    ),
)
_BUSY = ColumnFamily(
    counter(
        "lunscope_port_busy_seconds_total",
        "Time with at least one I/O in the driver on any path of the port, by exact time since it was attached.",
        "port",
    ),
    (MetricPart("busy_ns"),),
    per=_NS,
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
    for family, quantity, factor in _SUMS:
        sums = view.port_sums.column(quantity)
        known = [(rendered[key], round(value * factor, 3)) for key, value in sums.items() if key in rendered]
        if known:
            yield MetricPoint(family, (Values([one for one, _ in known], [value for _, value in known]),))
    keys = tuple(rendered)
    yield from _of_table((_BUSY,), view, TRACE_GROUP.name, [group_key("hba", key) for key in keys], rendered)
    yield from _of_table(_ERRORS, view, PORT_ERRORS.name, keys, rendered)
    yield from _facts(view, ports, view.roles.port_limits.tolist())


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


PORT_LEVEL = MetricLevel("ports", "counters of HBA ports", FAMILIES, _measure, of_process=True)
