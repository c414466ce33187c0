"""A frame as `lunscope.report/1`: strict JSON, figures by field id, null where missing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from collectors.fields import fields_of
from collectors.model import Frame, FrameTable, Tier
from collectors.reports.labels import row_facts, row_identity
from collectors.reports.layout import shown_rows
from collectors.session.moments import iso_time
from engine.text import safe_text

SCHEMA = "lunscope.report/1"


ALL_TABLES = ("disks", "paths", "hbas", "tapes")


def report_line(frame: Frame, tables: Sequence[str] = ALL_TABLES, *, all_disks: bool = False) -> dict[str, object]:
    """One interval as a document of numbers, strings and null only.

    `id` is what survives renaming (wwid, NGUID, serial) where the disk has one; `tiers` in a row says how the figures
    were obtained whose tier varies by disk.

    Args:
        frame: any frame; it may have no disks.
        tables: those of which the rows are wanted; the others are empty.
        all_disks: also the disks, paths and ports without I/O.
    """
    return {
        "schema": SCHEMA,
        "time": iso_time(frame.time_ns),
        "interval_s": _number(frame.elapsed_s),
        "tier": frame.topology.host.tier.name.lower(),
        **{name: _rows(frame, name, all_rows=all_disks) if name in tables else [] for name in ALL_TABLES},
    }


def _rows(frame: Frame, name: str, *, all_rows: bool) -> list[dict[str, object]]:
    table = frame.tables.get(name)
    shown = [] if table is None else shown_rows(table, all_disks=all_rows)
    return [] if table is None else [_row(frame, name, table, row) for row in shown]


def _row(frame: Frame, name: str, table: FrameTable, row: int) -> dict[str, object]:
    key = table.rows.keys[row]
    identity = row_identity(name, key, frame.topology)
    facts = row_facts(name, key, frame.topology)
    figures = {field.id: _number(table.value(field.id, row)) for field in fields_of(name)}
    tiers = {field_id: Tier(int(codes[row])).name.lower() for field_id, codes in table.tiers.items() if codes[row]}
    return {"name": safe_text(table.rows.names[row]), "id": identity, **facts, **figures, "tiers": tiers}


def _number(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None
