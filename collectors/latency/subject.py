"""Whose latencies a heat map shows, and which part of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Part(StrEnum):
    """Part of an I/O's time; what a source calls by the direction alone is the whole of it."""

    TOTAL = "total"
    QUEUE = "queue"
    SERVICE = "service"


class Direction(StrEnum):
    """Which I/Os count."""

    BOTH = "both"
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class LatencySubject:
    """Rows of one set of histograms that are added up: a disk, the paths of a LUN or port, the targets of the load."""

    title: str
    source: str
    """Name of the histograms in a sample: "load", "trace"."""
    keys: frozenset[str]
    """Empty: all rows there are."""


def parts_of(series: Sequence[str]) -> tuple[Part, ...]:
    """Parts that these series hold, in the order of `Part`."""
    held = {_split(name)[0] for name in series}
    return tuple(part for part in Part if part in held)


def series_of(series: Sequence[str], part: Part, direction: Direction) -> tuple[str, ...]:
    """Those of the series that belong to a part and a direction."""
    return tuple(name for name in series if _belongs(name, part, direction))


def _belongs(name: str, part: Part, direction: Direction) -> bool:
    its_part, its_direction = _split(name)
    return its_part == part and (direction is Direction.BOTH or its_direction == direction)


def _split(name: str) -> tuple[str, str]:
    """Take "queue_read" apart; "read" is the total of reads."""
    part, _, direction = name.rpartition("_")
    return part or Part.TOTAL, direction
