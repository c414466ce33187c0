"""A frame as `lunscope.report/1`: strict JSON, figures by field id, null where missing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from collectors.model import Frame, FrameTable, Tier
from collectors.registry import REPORTED, subject_of
from collectors.session.moments import iso_time
from engine.text import safe_text

SCHEMA = "lunscope.report/1"


ALL_TABLES = tuple(subject.table for subject in REPORTED)
UNASKED_TABLES = tuple(subject.table for subject in REPORTED if subject.report is not None and subject.report.unasked)
"""Those of which a report has rows when none is asked for by its flag."""


def report_line(frame: Frame, tables: Sequence[str] = ALL_TABLES) -> dict[str, object]:
    """One interval as a document of numbers, strings and null only.

    Idle disks, paths and ports are rows as well: a program that reads many lines finds the same rows in each. `id` is
    what survives renaming (wwid, NGUID, serial) where the disk has one; `tiers` in a row says how the figures were
    obtained whose tier varies by disk; `states_age_s` how long before `time` the states of paths were read.

    Args:
        frame: any frame; it may have no disks.
        tables: those of which the rows are wanted; the others are empty.
    """
    return {
        "schema": SCHEMA,
        "time": iso_time(frame.time_ns),
        "interval_s": _number(frame.elapsed_s),
        "tier": frame.topology.host.tier.name.lower(),
        "states_age_s": _number(frame.states_age_s),
        **{name: _rows(frame, name) if name in tables else [] for name in ALL_TABLES},
    }


def _rows(frame: Frame, name: str) -> list[dict[str, object]]:
    table = frame.tables.get(name)
    return [] if table is None else [_row(frame, name, table, row) for row in range(len(table.rows))]


def _row(frame: Frame, name: str, table: FrameTable, row: int) -> dict[str, object]:
    key = table.rows.keys[row]
    subject, topology = subject_of(name), frame.topology
    figures = {field.id: _number(table.value(field.id, row)) for field in subject.fields}
    tiers = {field_id: Tier(int(codes[row])).name.lower() for field_id, codes in table.tiers.items() if codes[row]}
    return {
        "name": safe_text(table.rows.names[row]),
        "id": subject.identity(key, topology),
        **subject.facts(key, topology),
        **figures,
        "tiers": tiers,
    }


def _number(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None
