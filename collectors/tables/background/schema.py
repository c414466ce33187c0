"""The raw table of background work."""

from __future__ import annotations

from msgspec import Struct

from collectors.model import Column, Kind, Schema

FILL = "fill"
"""How full a store is: no work, so it neither begins nor ends."""

BACKGROUND = Schema(
    "background",
    (
        Column("waits", Kind.GAUGE),
        Column("done_bytes", Kind.COUNTER),
        Column("total_bytes", Kind.GAUGE),
        Column("members", Kind.GAUGE),
        Column("missing_members", Kind.GAUGE),
        Column("lasts_ms", Kind.GAUGE),
        Column("sampled_ns", Kind.COUNTER),
    ),
)
"""One row per work under way on an md array or a map, and per store that fills; the key is the name of the device and
of the work. `waits` is 1 while work on another array with the same disks comes first; bytes are those of one member:
each reads or writes as many. Members are missing where that is not so, and of stores. `sampled_ns` is CLOCK_MONOTONIC
when the progress was read: other tables of the sample come first, and work that is throttled moves by whole seconds."""


def work_key(array: str, action: str) -> str:
    """Key and name of the row of a work."""
    return f"{array} {action}"


def work_of(key: str) -> tuple[str, str]:
    """Return the array and the work that a key names."""
    array, _, action = key.rpartition(" ")
    return array, action


class ArrayWork(Struct, frozen=True):
    """What the kernel does on one array or map."""

    array: str
    """Kernel name."""
    action: str
    waits: bool = False
    done_bytes: int | None = None
    total_bytes: int | None = None
    members: int | None = None
    missing_members: int | None = None
    lasts_ms: int | None = None
    """Time since its begin; None where that was before the first reading."""
    sampled_ns: int | None = None
    """CLOCK_MONOTONIC when the progress was read."""

    @property
    def key(self) -> str:
        """Name of the array and of the work, which make its row."""
        return work_key(self.array, self.action)
