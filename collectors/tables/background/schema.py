"""The raw table of background work."""

from __future__ import annotations

from collectors.model import Column, Kind, Schema

BACKGROUND = Schema(
    "background",
    (
        Column("waits", Kind.GAUGE),
        Column("done_bytes", Kind.COUNTER),
        Column("total_bytes", Kind.GAUGE),
        Column("members", Kind.GAUGE),
        Column("missing_members", Kind.GAUGE),
    ),
)
"""One row per work under way, from /proc/mdstat; the key is the name of the array and of the work. `waits` is 1 while
work on another array with the same disks comes first; bytes are those of one member: each reads or writes as many."""


def work_key(array: str, action: str) -> str:
    """Key and name of the row of a work."""
    return f"{array} {action}"


def work_of(key: str) -> tuple[str, str]:
    """Return the array and the work that a key names."""
    array, _, action = key.rpartition(" ")
    return array, action
