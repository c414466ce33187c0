"""The table and status lines of a dm-multipath map (Documentation/admin-guide/device-mapper/dm-mpath, dm-mpath.c)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from engine.text import whole_number

Number = tuple[int, int]


@dataclass(frozen=True, slots=True)
class MapPath:
    """State of one path in a map."""

    state: str
    """active or failed; empty if unknown."""
    failures: int | None
    group: int
    """Priority group, from 1."""
    weight: int | None
    """Last argument of the path in the table: the throughput weight of service-time, the repeat count of others."""


@dataclass(frozen=True, slots=True)
class MapState:
    """One map: its path selector and its paths by device number."""

    policy: str
    paths: Mapping[Number, MapPath]


def parse_map(table: str, status: str) -> MapState | None:
    """Parse both lines; None if the table has an unknown format, empty states if the status has.

    Args:
        table: parameters after "multipath" in the output of `dmsetup table`.
        status: the same of `dmsetup status`.
    """
    try:
        policy, weights = _table(iter(table.split()))
    except (ValueError, StopIteration):
        return None
    try:
        states = _status(iter(status.split()))
    except (ValueError, StopIteration):
        states = {}
    return MapState(
        policy,
        {
            number: MapPath(*states.get(number, ("", None)), group, weight)
            for number, (group, weight) in weights.items()
        },
    )


def _table(words: Iterator[str]) -> tuple[str, dict[Number, tuple[int, int | None]]]:
    """`#features f... #handler h... #groups first { selector #args a... #paths #path_args { device a... } }`."""
    _counted(words)
    _counted(words)
    groups, _ = int(next(words)), next(words)
    policies: list[str] = []
    paths: dict[Number, tuple[int, int | None]] = {}
    for group in range(1, groups + 1):
        policies.append(next(words))
        _counted(words)
        count, arguments = int(next(words)), int(next(words))
        for _ in range(count):
            number = _number(next(words))
            values = [next(words) for _ in range(arguments)]
            paths[number] = group, whole_number(values[-1]) if values else None
    return "/".join(dict.fromkeys(policies)), paths


def _status(words: Iterator[str]) -> dict[Number, tuple[str, int | None]]:
    """`#features f... #handler h... #groups current { state #args a... #paths #path_args { device A|F n a... } }`."""
    _counted(words)
    _counted(words)
    groups, _ = int(next(words)), next(words)
    paths: dict[Number, tuple[str, int | None]] = {}
    for _ in range(groups):
        next(words)
        _counted(words)
        count, arguments = int(next(words)), int(next(words))
        for _ in range(count):
            number = _number(next(words))
            paths[number] = {"A": "active", "F": "failed"}.get(next(words), ""), int(next(words))
            for _ in range(arguments):
                next(words)
    return paths


def _counted(words: Iterator[str]) -> list[str]:
    """Take a count and that many words."""
    return [next(words) for _ in range(int(next(words)))]


def _number(word: str) -> Number:
    major, _, minor = word.partition(":")
    return int(major), int(minor)
