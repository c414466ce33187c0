"""Averages over a recording, in the columns and the words of `report`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from collectors.all_subjects import REPORTED
from collectors.field import Unit
from collectors.hotness import verdict
from collectors.model import Frame, FrameTable, Tier
from collectors.registry import get_field, subject_of
from collectors.reports.documents.content import Block, DocumentTable, Paragraph
from collectors.reports.documents.recorded import Recorded
from collectors.reports.page import LEGEND, figure_text, printed_unit, report_fields, report_of, shown_rows
from collectors.subject import Subject

HOT_DISKS = 6
"""Disks with charts of their own, the hottest first."""


class DocumentOptions(Struct, frozen=True):
    """What to show of a recording."""

    tables: tuple[str, ...] = ()
    """Subjects; none: all that did any I/O."""
    split: bool = False
    """Reads and writes separately in the tables, too."""
    all_rows: bool = False
    """Also rows without I/O."""
    interval_s: float | None = None
    """Shortest time between points of charts; None: so that there are at most POINTS."""
    best: Tier = Tier.EXACT


def hot_disks(found: Recorded) -> tuple[str, ...]:
    """Keys of the disks with I/O, the hottest over the whole recording first."""
    table = found.tables.get("disks")
    if table is None or not len(table.rows):
        return ()
    heat = np.nan_to_num(table.columns.get("heat", np.zeros(len(table.rows))), nan=-1.0)
    busy = np.nan_to_num(table.columns.get("in_flight", np.zeros(len(table.rows))), nan=-1.0)
    active = np.nan_to_num(table.columns.get("iops", np.zeros(len(table.rows)))) > 0
    order = np.lexsort((-busy, -heat))
    return tuple(table.rows.keys[row] for row in order.tolist() if active[row])[:HOT_DISKS]


def average_blocks(found: Recorded, options: DocumentOptions) -> Iterator[Block]:
    """Yield the tables of `report`, after the verdict on the hottest disk."""
    grids = list(_average_grids(found, options))
    if hot_words := _hottest(found):
        yield Paragraph(hot_words, important=True)
    yield from grids
    yield Paragraph(LEGEND if grids else "No I/O was recorded.")


def _hottest(found: Recorded) -> str:
    """Explain the hottest disk in one line, as the screens do, but over the whole recording."""
    hot = hot_disks(found)
    if not hot:
        return ""
    whole = Frame(found.end_ns, 0, found.measured_s, found.tables, found.topology)
    disks = found.tables["disks"]
    return f"Hottest disk over the recording: {verdict(whole, disks.rows.positions[hot[0]])}{_not_judged(disks)}"


def _not_judged(disks: FrameTable) -> str:
    """Say how many disks did I/O and may be hotter: without busy time they have no hotness."""
    unknown = int(np.count_nonzero((disks.columns["iops"] > 0) & np.isnan(disks.columns["heat"])))
    return f"; busy time of {subject_of('disks').counted(unknown)} with I/O is not known" if unknown else ""


def _average_grids(found: Recorded, options: DocumentOptions) -> Iterator[DocumentTable]:
    for subject in REPORTED:
        table = found.tables.get(subject.table)
        if table is None or (options.tables and subject.table not in options.tables):
            continue
        rows = shown_rows(subject, table, every=options.all_rows)
        if not rows or (not options.tables and subject.report is not None and not subject.report.unasked):
            continue
        labels = subject.labels(table.rows, found.topology)
        names = tuple(labels[row] for row in rows)
        for title, fields in _layouts(subject, options):
            if any(not math.isnan(table.value(field, row)) for field in fields[1:] for row in rows):
                yield _average_grid(title, subject, fields, (table, rows, names))


def _layouts(subject: Subject, options: DocumentOptions) -> Iterator[tuple[str, tuple[str, ...]]]:
    report, heading = report_of(subject), subject.heading
    yield heading, report_fields(report, split=False)
    if options.split:
        yield f"{heading}, reads and writes", report_fields(report, split=True)
    if report.distribution_columns != report.columns:
        yield f"{heading}, percentiles and peaks", report.distribution_columns


_Rows = tuple[FrameTable, Sequence[int], tuple[str, ...]]
"""A table, its rows to show, and their names."""


def _average_grid(title: str, subject: Subject, fields: tuple[str, ...], shown: _Rows) -> DocumentTable:
    table, rows, names = shown
    declared = [get_field(subject.table, field_id) for field_id in fields]
    cells = tuple(
        (name, *(_cell(table, field.id, field.unit, row) for field in declared))
        for name, row in zip(names, rows, strict=True)
    )
    head = ((subject.title, ""), *((field.title, printed_unit(field.unit)) for field in declared))
    return DocumentTable.of_first(title, head, cells)


def _cell(table: FrameTable, field_id: str, unit: Unit, row: int) -> str:
    text, mark = figure_text(table, field_id, unit, row)
    return f"{text}{mark}".rstrip()
