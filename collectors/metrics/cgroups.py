"""I/O and pressure of control groups, by device."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from collectors.metrics.family import (
    ColumnFamily,
    MetricPart,
    MetricPoint,
    counter,
    first_of_each,
    gauge,
    labels,
    of_columns,
)
from collectors.metrics.view import MetricLevel, MetricView
from collectors.model import Rows
from collectors.tables.cgroup.schema import CGROUP, parts_of

_LABELS = ("cgroup", "device")
_US = 1_000_000


def _counted(name: str, help_: str, column: str, per: int = 1) -> ColumnFamily:
    return ColumnFamily(counter(f"lunscope_cgroup_{name}_total", help_, *_LABELS), (MetricPart(column),), per=per)


_IO = (
    _counted("reads", "Reads of the group and its descendants.", "reads"),
    _counted("read_bytes", "Bytes read by the group and its descendants.", "read_bytes"),
    _counted("writes", "Writes of the group and its descendants.", "writes"),
    _counted("written_bytes", "Bytes written by the group and its descendants.", "write_bytes"),
    _counted("discards", "Discards of the group and its descendants.", "discards"),
    _counted("discarded_bytes", "Bytes discarded by the group and its descendants.", "discard_bytes"),
    _counted("cost_usage_seconds", "Device time the group was charged by io.cost.", "cost_usage_us", _US),
    _counted("cost_wait_seconds", "Time I/Os of the group waited in io.cost.", "cost_wait_us", _US),
    _counted("cost_indebt_seconds", "Time the group was in debt to io.cost.", "cost_indebt_us", _US),
    _counted("cost_indelay_seconds", "Time io.cost delayed processes of the group.", "cost_indelay_us", _US),
    _counted("throttled_ios", "I/Os that limits of the group and its descendants held.", "throttle_ios"),
    _counted("throttle_wait_seconds", "Time limits held these I/Os.", "throttle_wait_ns", 1_000_000_000),
    *(
        ColumnFamily(
            gauge(f"lunscope_cgroup_{name}_per_second", "Limit set for the group (io.max).", *_LABELS, "operation"),
            tuple(
                MetricPart(f"{operation}_limit_{unit}", f'operation="{operation}"') for operation in ("read", "write")
            ),
        )
        for name, unit in (("limit_bytes", "bytes"), ("limit_ios", "ios"))
    ),
)
_PRESSURE = tuple(
    ColumnFamily(
        counter(f"lunscope_cgroup_pressure_io_{name}_seconds_total", help_, "cgroup"), (MetricPart(column),), per=_US
    )
    for name, help_, column in (
        ("waiting", "Time in which some process of the group waited for I/O.", "psi_some_us"),
        ("stalled", "Time in which no process of the group could go on because of I/O.", "psi_full_us"),
    )
)


@lru_cache(maxsize=4)
def _rendered(rows: Rows) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels with and without the device."""
    groups = [parts_of(key)[1] for key in rows.keys]
    devices = [name.rpartition(" ")[2] for name in rows.names]
    both = tuple(labels(cgroup=group, device=device) for group, device in zip(groups, devices, strict=True))
    return both, tuple(labels(cgroup=group) for group in groups)


def _measure(view: MetricView) -> Iterator[MetricPoint]:
    table = view.table(CGROUP.name)
    if table is None:
        return
    for families, rendered in zip((_IO, _PRESSURE), _rendered(table.rows), strict=True):
        at = first_of_each(rendered)
        yield from of_columns(families, table, [rendered[row] for row in at.tolist()], at)


CGROUP_LEVEL = MetricLevel(
    "cgroups",
    "I/O, limits and pressure of control groups by device",
    tuple(one.family for one in (*_IO, *_PRESSURE)),
    _measure,
)
