"""The slowest I/Os of the load as timed by its engine."""

from __future__ import annotations

from dataclasses import dataclass

from collectors.model import MISSING, Sample
from collectors.tables.load.schema import SLOW_LOAD

_DIRECTIONS = ("read", "write")


@dataclass(frozen=True, slots=True)
class LoadIo:
    """One I/O from submit to reap; `issued_ns` is wall time."""

    target: str
    """Key of its row in the load table."""
    name: str
    direction: str
    offset: int
    size_bytes: int
    issued_ns: int
    latency_ns: int
    major: int
    minor: int


def slow_load_ios(sample: Sample) -> tuple[LoadIo, ...]:
    """List the slowest I/Os of the load, slowest first; none if there is no load."""
    table, load = sample.tables.get(SLOW_LOAD.name), sample.tables.get("load")
    if table is None or load is None or table.schema.columns != SLOW_LOAD.columns:
        return ()
    ahead_ns = sample.time_ns - sample.monotonic_ns
    found = []
    for target, direction, offset, size, issued_ns, latency_ns, major, minor in table.values.tolist():
        if target < len(load.rows) and direction < len(_DIRECTIONS) and issued_ns != int(MISSING):
            name, key = load.rows.names[target], load.rows.keys[target]
            issued = ahead_ns + issued_ns
            found.append(LoadIo(key, name, _DIRECTIONS[direction], offset, size, issued, latency_ns, major, minor))
    return tuple(found)
