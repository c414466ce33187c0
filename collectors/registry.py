"""All subjects by their frame tables; each is imported when it is first asked for.

A new subject is a module in `collectors.tables` and an entry here. The first picture of the screens shows one of them;
what iterates over all of them imports `collectors.all_subjects`.
"""

from __future__ import annotations

import functools
from importlib import import_module

from collectors.field import Field
from collectors.subject import Subject

_LISTED = {
    "disks": "block.subjects:DISKS",
    "paths": "block.subjects:PATHS",
    "hbas": "block.subjects:PORTS",
    "target_ports": "block.subjects:TARGET_PORTS",
    "whole_host": "block.subjects:WHOLE_HOST",
    "tapes": "tape.subject:TAPES",
    "cgroups": "cgroup.subject:CGROUPS",
    "host": "host.subject:HOSTS",
    "processes": "process.subject:PROCESSES",
    "load": "load.targets:LOAD_TARGETS",
    "load_total": "load.targets:LOAD_TOTAL",
    "load_paths": "load.layout:LOAD_PATHS",
    "load_logical": "load.layout:LOAD_LOGICAL_IOS",
    "process_ios": "process_io.subject:PROCESS_IOS",
    "caches": "cache.subject:CACHES",
    "fleet": "fleet.subject:FLEET_HOSTS",
    "fleet_total": "fleet.subject:FLEET_TOTAL",
    "nfs": "nfs.subject:NFS_MOUNTS",
    "nfs_transports": "nfs.subject:NFS_TRANSPORTS",
    "background": "background.subject:WORKS",
}
"""Module below `collectors.tables` and name of the subject of each table, in display order."""

_MEASURED = {
    "sweep_points": "study.subjects:SWEEP_POINTS",
    "rate_points": "study.subjects:RATE_POINTS",
    "isolation_points": "study.subjects:ISOLATION_POINTS",
}
"""What studies measure, likewise: no sample has it."""

TABLES = tuple(_LISTED)
"""Tables of samples, in display order."""


@functools.cache
def subject_of(table: str) -> Subject:
    """Return the subject of a frame table.

    Raises:
        KeyError: there is none.
    """
    module, _, name = (_MEASURED.get(table) or _LISTED[table]).partition(":")
    subject: Subject = getattr(import_module(f"collectors.tables.{module}"), name)
    return subject


def fields_of(table: str) -> tuple[Field, ...]:
    """All fields of a frame table, in order; none for an unknown table."""
    return subject_of(table).fields if table in _LISTED or table in _MEASURED else ()


def get_field(table: str, field_id: str) -> Field:
    """One field.

    Raises:
        KeyError: the registry has no such field.
    """
    return _fields_by_id(table)[field_id]


@functools.cache
def _fields_by_id(table: str) -> dict[str, Field]:
    return {field.id: field for field in subject_of(table).fields}
