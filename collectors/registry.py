"""All subjects. Sampling, reports, exports, charts, grids and help iterate over this list.

A new subject is a module in `collectors.tables` and an entry here.
"""

from __future__ import annotations

from collections.abc import Collection

from collectors.field import Field
from collectors.model import FrameTable, Schema
from collectors.subject import Averages, Interval, Subject
from collectors.tables.block.subjects import DISKS, PATHS, PORTS
from collectors.tables.cache.subject import CACHES
from collectors.tables.cgroup.subject import CGROUPS
from collectors.tables.fleet.subject import FLEET_HOSTS, FLEET_TOTAL
from collectors.tables.host.subject import HOSTS
from collectors.tables.load.layout import LOAD_LOGICAL_IOS, LOAD_PATHS
from collectors.tables.load.targets import LOAD_TARGETS, LOAD_TOTAL
from collectors.tables.nfs.subject import NFS_MOUNTS, NFS_TRANSPORTS
from collectors.tables.process.subject import PROCESSES
from collectors.tables.process_io.subject import PROCESS_IOS
from collectors.tables.tape.subject import TAPES

SUBJECTS: tuple[Subject, ...] = (
    DISKS,
    PATHS,
    PORTS,
    TAPES,
    CGROUPS,
    HOSTS,
    PROCESSES,
    LOAD_TARGETS,
    LOAD_TOTAL,
    LOAD_PATHS,
    LOAD_LOGICAL_IOS,
    PROCESS_IOS,
    CACHES,
    FLEET_HOSTS,
    FLEET_TOTAL,
    NFS_MOUNTS,
    NFS_TRANSPORTS,
)
"""In display order."""

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


_BY_TABLE = {subject.table: subject for subject in SUBJECTS}
_BY_ID = {(field.table, field.id): field for subject in SUBJECTS for field in subject.fields}


def subject_of(table: str) -> Subject:
    """Return the subject of a frame table.

    Raises:
        KeyError: there is none.
    """
    return _BY_TABLE[table]


def fields_of(table: str) -> tuple[Field, ...]:
    """All fields of a frame table, in order; none for an unknown table."""
    subject = _BY_TABLE.get(table)
    return () if subject is None else subject.fields


def get_field(table: str, field_id: str) -> Field:
    """One field.

    Raises:
        KeyError: the registry has no such field.
    """
    return _BY_ID[(table, field_id)]


def derive_tables(interval: Interval) -> dict[str, FrameTable]:
    """Derive the frame tables of all raw tables of a sample."""
    tables: dict[str, FrameTable] = {}
    for subject in SUBJECTS:
        table = interval.now(subject.raw[0].name) if subject.derive is not None else None
        if table is not None and subject.derive is not None:
            tables |= subject.derive(interval, table)
    return tables
