"""The slowest I/Os of an interval, as traced in the kernel and as timed by the load's engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from collectors.model import MISSING, Device, Sample, Table
from collectors.tables.block.schema import SLOW_IO
from collectors.tables.load.schema import SLOW_LOAD
from engine.text import safe_text

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


_OPERATIONS = {0: "read", 1: "write", 2: "flush", 3: "discard", 5: "erase", 7: "append", 9: "zeroes"}
"""enum req_op (include/linux/blk_types.h)."""
_NEEDED = {"completed_ns", "major", "minor"}
_UNKNOWN = int(MISSING)


@dataclass(frozen=True, slots=True)
class SlowIo:
    """One I/O and its times; None where unknown."""

    time_ns: int
    """Wall time of completion."""
    major: int
    minor: int
    device_key: str
    device: str
    operation: str
    sector: int | None
    size_bytes: int | None
    tag_wait_ns: int | None
    queue_ns: int | None
    service_ns: int | None
    pid: int | None
    command: str
    cgroup: int | None

    @property
    def latency_ns(self) -> int:
        """Sum of its known times."""
        return (self.tag_wait_ns or 0) + (self.queue_ns or 0) + (self.service_ns or 0)


def slow_ios(sample: Sample, devices: Mapping[tuple[int, int], Device]) -> tuple[SlowIo, ...]:
    """List the slowest I/Os of a sample, slowest first; none if the tier has none."""
    table = sample.tables.get(SLOW_IO.name)
    if table is None or not {column.id for column in table.schema.columns} >= _NEEDED:
        return ()
    ahead_ns = sample.time_ns - sample.monotonic_ns
    found = [_slow_io(row, ahead_ns, devices) for row in _rows(table)]
    return tuple(sorted(found, key=lambda io: -io.latency_ns))


def by_number(devices: Mapping[str, Device]) -> dict[tuple[int, int], Device]:
    """Index devices by major and minor."""
    return {(device.major, device.minor): device for device in devices.values()}


def _rows(table: Table) -> Iterator[dict[str, int | None]]:
    names = [column.id for column in table.schema.columns]
    for row in np.asarray(table.values).tolist():
        yield {name: None if value == _UNKNOWN else value for name, value in zip(names, row, strict=True)}


def _slow_io(row: Mapping[str, int | None], ahead_ns: int, devices: Mapping[tuple[int, int], Device]) -> SlowIo:
    number = (row.get("major") or 0, row.get("minor") or 0)
    device = devices.get(number)
    operation = row.get("operation")
    return SlowIo(
        time_ns=ahead_ns + (row["completed_ns"] or 0),
        major=number[0],
        minor=number[1],
        device_key="" if device is None else device.key,
        device=f"{number[0]}:{number[1]}" if device is None else device.name,
        operation="?" if operation is None else _OPERATIONS.get(operation, f"op {operation}"),
        sector=row.get("sector"),
        size_bytes=row.get("bytes"),
        tag_wait_ns=row.get("tag_wait_ns"),
        queue_ns=row.get("queue_ns"),
        service_ns=row.get("service_ns"),
        pid=row.get("pid"),
        command=_command(row.get("command_low"), row.get("command_high")),
        cgroup=row.get("cgroup"),
    )


def _command(low: int | None, high: int | None) -> str:
    """Decode the two numbers that hold the 16 bytes of the kernel's comm."""
    if low is None or high is None:
        return ""
    name = (low.to_bytes(8, "little") + high.to_bytes(8, "little")).partition(b"\0")[0]
    return safe_text(name.decode("utf-8", "backslashreplace"))
