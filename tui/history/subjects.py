"""Subjects of the overview's charts."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from collectors.model import Frame, FrameTable
from collectors.tables.block.all_disks import ALL_DISKS
from engine.text import safe_text


class ChartSubject(StrEnum):
    """The subject of the charts."""

    DISK = "disk"
    ALL_DISKS = "all disks"
    LOAD = "load"


class Trace(Struct, frozen=True):
    """A subject's table and row in the history, and its title."""

    title: str
    table: str
    key: str


def next_subject(subject: ChartSubject, frame: Frame) -> ChartSubject:
    """Return the next subject, skipping the load if there is none."""
    offered = [one for one in ChartSubject if one is not ChartSubject.LOAD or "load_total" in frame.tables]
    position = offered.index(subject) if subject in offered else -1
    return offered[(position + 1) % len(offered)]


def trace_of(subject: ChartSubject, chosen: str | None, frame: Frame) -> Trace | None:
    """Find the trace of a subject; without a load, that of the selected disk."""
    if subject is ChartSubject.ALL_DISKS:
        return Trace("all disks", "all_disks", ALL_DISKS)
    load = frame.tables.get("load_total")
    if subject is ChartSubject.LOAD and load is not None and len(load.rows):
        return Trace("load", "load_total", load.rows.keys[0])
    if chosen is None:
        return None
    disks = frame.tables.get("disks")
    row = row_of(chosen, disks)
    return Trace(safe_text(disks.rows.names[row]), "disks", chosen) if disks is not None and row is not None else None


def row_of(key: str | None, table: FrameTable | None) -> int | None:
    """Row of a key in a table; None if missing."""
    return None if key is None or table is None else table.rows.positions.get(key)
