"""The picture of a fleet as text and as JSON lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from collectors.fleet.fleet_host import FleetHost, HostState
from collectors.fleet.merge import host_of
from collectors.model import Frame, FrameTable
from collectors.registry import fields_of
from engine.text import safe_text, short_text

SCHEMA = "lunscope.fleet/1"
HOT_DISKS = 5
_NAMED = 8
_GOOD = frozenset({HostState.LIVE})


def missing_hosts(hosts: Mapping[str, FleetHost]) -> dict[str, str]:
    """Hosts that are not connected, and why."""
    return {name: host.reason or host.state.value for name, host in hosts.items() if not host.is_connected}


def missing_parts(frame: Frame, hosts: Mapping[str, FleetHost]) -> dict[str, str]:
    """Hosts that are not in the totals of an interval, and why."""
    table = frame.tables.get("fleet")
    iops = None if table is None else table.columns["iops"]
    return {
        name: host.reason or (host.state.value if not host.is_connected else "no sample of this interval")
        for row, (name, host) in enumerate(hosts.items())
        if iops is None or row >= len(iops) or math.isnan(iops[row])
    }


def odd_hosts(hosts: Mapping[str, FleetHost]) -> dict[str, str]:
    """All hosts that are not as they should be, and why, and those that another gateway than theirs leads to."""
    return {
        name: f"{host.state.value}{f': {host.reason}' if host.reason else ''}"
        for name, host in hosts.items()
        if host.state not in _GOOD or host.moved
    }


def hot_disks(frame: Frame, most: int = HOT_DISKS) -> list[tuple[str, str, float, float]]:
    """Return the busiest disks of all hosts: host, disk, busy in percent, IOPS."""
    disks = frame.tables.get("disks")
    if disks is None or "busy_pct" not in disks.columns or not len(disks.rows):
        return []
    busy = np.nan_to_num(disks.columns["busy_pct"], nan=-1.0)
    order = np.argsort(-busy, kind="stable")[:most]
    return [
        (
            host_of(disks.rows.keys[row]),
            disks.rows.names[row].partition(":")[2],
            float(busy[row]),
            disks.value("iops", row),
        )
        for row in order.tolist()
        if busy[row] > 0
    ]


def fleet_lines(frame: Frame, hosts: Mapping[str, FleetHost]) -> Iterator[str]:
    """Write one interval."""
    table, total = frame.tables.get("fleet"), frame.tables.get("fleet_total")
    odd = odd_hosts(hosts)
    yield f"{'host':<20}{'state':<11}{'IOPS':>9}{'MiB/s':>9}{'await':>8}{'load':>9}{'lat':>8}{'clock+-':>9}"
    for name, host in hosts.items():
        row = None if table is None else table.rows.positions.get(name)
        yield _line(short_text(safe_text(name), 19), host.state.value, table, row)
    if total is not None:
        present = len(hosts) - len(missing_parts(frame, hosts))
        yield _line(f"all ({present} of {len(hosts)})", "partial" if present < len(hosts) else "", total, 0)
    for host_name, disk, busy, iops in hot_disks(frame, 3):
        yield f"  hot: {safe_text(host_name)} {safe_text(disk)}: {busy:.0f} % busy, {_figure(iops, 0)} IOPS"
    for name, reason in list(odd.items())[:_NAMED]:
        yield f"  {safe_text(name)}: {safe_text(reason)}"
    if len(odd) > _NAMED:
        yield f"  and {len(odd) - _NAMED} more hosts"


def _line(name: str, state: str, table: FrameTable | None, row: int | None) -> str:
    def value(field_id: str) -> float:
        return math.nan if table is None or row is None else table.value(field_id, row)

    return (
        f"{name:<20}{state:<11}{_figure(value('iops'), 0):>9}{_figure(value('bytes_per_s') / 1048576, 1):>9}"
        f"{_figure(value('await_ms'), 2):>8}{_figure(value('load_iops'), 0):>9}"
        f"{_figure(value('load_await_ms'), 2):>8}{_figure(value('clock_bound_ms'), 2):>9}"
    ).rstrip()


def _figure(value: float, decimals: int) -> str:
    return "-" if math.isnan(value) else f"{value:,.{decimals}f}"


def fleet_line_document(frame: Frame, hosts: Mapping[str, FleetHost]) -> dict[str, object]:
    """Write one interval as JSON: figures by field id, null where they are missing."""
    table, total = frame.tables.get("fleet"), frame.tables.get("fleet_total")
    missing = missing_parts(frame, hosts)
    return {
        "schema": SCHEMA,
        "time": frame.time_ns / 1e9,
        "interval_s": None if math.isnan(frame.elapsed_s) else frame.elapsed_s,
        "partial": bool(missing),
        "missing": [{"host": name, "reason": reason} for name, reason in missing.items()],
        "total": None if total is None else _figures("fleet_total", total, 0),
        "hosts": [
            {
                "name": name,
                "state": host.state.value,
                "reason": host.reason,
                "version": host.version,
                **({} if table is None else _figures("fleet", table, row)),
                "gateway": host.gateway,
            }
            for row, (name, host) in enumerate(hosts.items())
        ],
        "hot_disks": [
            {"host": host, "disk": disk, "busy_pct": busy, "iops": None if math.isnan(iops) else iops}
            for host, disk, busy, iops in hot_disks(frame)
        ],
        "events": [event.text for event in frame.events],
    }


def _figures(name: str, table: FrameTable, row: int) -> dict[str, float | None]:
    values = {field.id: table.value(field.id, row) for field in fields_of(name)}
    return {field_id: None if math.isnan(value) else value for field_id, value in values.items()}
