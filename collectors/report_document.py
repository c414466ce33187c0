"""A frame as `lunscope.report/1`: strict JSON, figures by field id, null where missing."""

from __future__ import annotations

import math

from collectors.fields import fields_of
from collectors.model import Frame, FrameTable, Tier
from collectors.moments import iso_time
from collectors.report_layout import shown_rows
from collectors.text import safe_text

SCHEMA = "lunscope.report/1"


def report_line(frame: Frame, *, all_disks: bool = False) -> dict[str, object]:
    """One interval as a document of numbers, strings and null only.

    `id` is what survives renaming (wwid, NGUID, serial) where the disk has one; `tiers` in a row says how the figures
    were obtained whose tier varies by disk.

    Args:
        frame: any frame; it may have no disks.
        all_disks: also the disks without I/O.
    """
    disks = frame.tables.get("disks")
    rows = [] if disks is None else [_row(frame, disks, row) for row in shown_rows(disks, all_disks=all_disks)]
    return {
        "schema": SCHEMA,
        "time": iso_time(frame.time_ns),
        "interval_s": _number(frame.elapsed_s),
        "tier": frame.topology.host.tier.name.lower(),
        "disks": rows,
        "paths": [],
        "hbas": [],
        "tapes": [],
    }


def _row(frame: Frame, table: FrameTable, row: int) -> dict[str, object]:
    key = table.rows.keys[row]
    device = frame.topology.devices.get(key)
    identity = device.persistent_id if device is not None and device.persistent_id else key
    figures = {field.id: _number(table.value(field.id, row)) for field in fields_of("disks")}
    tiers = {field_id: Tier(int(codes[row])).name.lower() for field_id, codes in table.tiers.items() if codes[row]}
    return {"name": safe_text(table.rows.names[row]), "id": safe_text(identity), **figures, "tiers": tiers}


def _number(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None
