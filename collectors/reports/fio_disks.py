"""The disks below a run as fio's JSON has them (disk_util)."""

from __future__ import annotations

import math

from collectors.model import FrameTable
from collectors.reports.run_devices import RunDevices

_COUNTS = {
    "read_ios": "reads_per_s",
    "write_ios": "writes_per_s",
    "read_merges": "read_merges_per_s",
    "write_merges": "write_merges_per_s",
}


def fio_disks(devices: RunDevices | None) -> list[dict[str, object]]:
    """Write what each disk did over the run, also for others: counts, and milliseconds spent; what is unknown is 0."""
    table = None if devices is None else devices.tables.get("disks")
    if devices is None or table is None:
        return []
    return [_disk(table, row, devices.elapsed_s) for row in range(len(table.rows))]


def _disk(table: FrameTable, row: int, elapsed_s: float) -> dict[str, object]:
    counts = {name: _known(table, field, row) * elapsed_s for name, field in _COUNTS.items()}
    ticks = [counts[f"{way}_ios"] * _known(table, f"{way}_await_ms", row) for way in ("read", "write")]
    return {
        "name": table.rows.names[row],
        **{name: round(count) for name, count in counts.items()},
        "read_ticks": round(ticks[0]),
        "write_ticks": round(ticks[1]),
        "in_queue": round(sum(ticks)),
        "util": _known(table, "busy_pct", row),
    }


def _known(table: FrameTable, field: str, row: int) -> float:
    value = table.value(field, row)
    return 0.0 if math.isnan(value) else value
