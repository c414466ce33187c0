"""Subject and part of the latencies of a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Part(StrEnum):
    """Part of an I/O's time; a series named by direction alone is the total."""

    TOTAL = "total"
    QUEUE = "queue"
    SERVICE = "service"


class Direction(StrEnum):
    """Direction of the I/Os to count."""

    BOTH = "both"
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class LatencySubject:
    """Rows of one set of histograms to add up: a disk, the paths of a LUN or port, the targets of the load."""

    title: str
    source: str
    """Name of the histograms in a sample: "load", "trace"."""
    keys: frozenset[str]
    """Empty: all rows."""


def parts_of(series: Sequence[str]) -> tuple[Part, ...]:
    """Parts in these series, in the order of `Part`."""
    held = {_split(name)[0] for name in series}
    return tuple(part for part in Part if part in held)


def series_of(series: Sequence[str], part: Part, direction: Direction) -> tuple[str, ...]:
    """Select the series of a part and a direction."""
    return tuple(name for name in series if _belongs(name, part, direction))


def _belongs(name: str, part: Part, direction: Direction) -> bool:
    its_part, its_direction = _split(name)
    return its_part == part and (direction is Direction.BOTH or its_direction == direction)


def _split(name: str) -> tuple[str, str]:
    """Split "queue_read" into part and direction; "read" is the total of reads."""
    part, _, direction = name.rpartition("_")
    return part or Part.TOTAL, direction
