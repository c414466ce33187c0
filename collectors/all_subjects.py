"""All subjects, imported. Sampling, reports, exports, charts and help iterate over them."""

from __future__ import annotations

from collections.abc import Collection

from collectors.model import FrameTable, Schema
from collectors.registry import TABLES, subject_of
from collectors.subject import Averages, Interval

SUBJECTS = tuple(map(subject_of, TABLES))
"""Subjects in display order."""

SCHEMAS: dict[str, Schema] = {
    schema.name: schema for subject in SUBJECTS for schema in (*subject.raw, *subject.sampled_raw, *subject.exact_raw)
}
"""Raw tables of this version by name; a session stores its own copy, so older files keep theirs."""

REPORTED = tuple(subject for subject in SUBJECTS if subject.report is not None)


def averages_of(tables: Collection[str]) -> list[Averages]:
    """Make one of each kind for a report of some tables: those of disks also give the tables of paths and ports.

    Subjects with many rows are left out unless they are among the tables: their sums take time.
    """
    reports = [(subject.table, subject.report) for subject in SUBJECTS if subject.report is not None]
    makers = dict.fromkeys(report.averages for table, report in reports if report.unasked or table in tables)
    return [make() for make in makers]


def derive_tables(interval: Interval) -> dict[str, FrameTable]:
    """Derive the frame tables of all raw tables of a sample."""
    tables: dict[str, FrameTable] = {}
    for subject in SUBJECTS:
        table = interval.now(subject.raw[0].name) if subject.derive is not None else None
        if table is not None and subject.derive is not None:
            tables |= subject.derive(interval, table)
    return tables
