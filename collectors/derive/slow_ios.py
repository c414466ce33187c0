"""The slowest I/Os of an interval as records a person can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np

from collectors.model import MISSING, Sample, SlowIo, Table, Topology

_OPERATIONS = {0: "read", 1: "write", 2: "flush", 3: "discard", 5: "secure erase", 7: "zone append", 9: "write zeroes"}
"""`enum req_op` of include/linux/blk_types.h; the others are zone management and passthrough."""

_NEEDED = ("done_ns", "major", "minor", "queue_ns", "service_ns")
_MS = 1e6


def slow_ios(sample: Sample) -> tuple[SlowIo, ...]:
    """Slowest first; none where no exact counters were read."""
    table = sample.tables.get("slow_io")
    return () if table is None else tuple(_records(table, sample))


def _records(table: Table, sample: Sample) -> Iterator[SlowIo]:
    names = [column.id for column in table.schema.columns]
    keys = _keys_by_number(sample.topology)
    wall_ns = sample.time_ns - sample.monotonic_ns
    for row in table.values.tolist():
        known = {name: value for name, value in zip(names, row, strict=True) if value != int(MISSING)}
        if all(name in known for name in _NEEDED):
            yield _record(known, keys.get((known["major"], known["minor"]), ("", "")), wall_ns)


def _record(known: Mapping[str, int], device: tuple[str, str], wall_ns: int) -> SlowIo:
    key, name = device
    operation = known.get("operation", -1)
    tag_wait_ns = known.get("tag_wait_ns", 0)
    return SlowIo(
        time_ns=known["done_ns"] + wall_ns,
        monotonic_ns=known["done_ns"],
        key=key,
        name=name or f"{known['major']}:{known['minor']}",
        operation=_OPERATIONS.get(operation, "other"),
        sector=known.get("sector", 0),
        bytes=known.get("bytes", 0),
        tag_wait_ms=tag_wait_ns / _MS if tag_wait_ns else float("nan"),
        queue_ms=known["queue_ns"] / _MS,
        service_ms=known["service_ns"] / _MS,
        process=known.get("process", 0),
        thread=known.get("thread", 0),
        command=_command(known),
        cgroup=known.get("cgroup", 0),
    )


def _command(known: Mapping[str, int]) -> str:
    halves = np.array([known.get("command_low", 0), known.get("command_high", 0)], "<u8").tobytes()
    return halves.partition(b"\0")[0].decode("utf-8", "backslashreplace")


@lru_cache(maxsize=4)
def _keys_by_number(topology: Topology) -> Mapping[tuple[int, int], tuple[str, str]]:
    """Key and name of each device, by its number."""
    return {(device.major, device.minor): (device.key, device.name) for device in topology.devices.values()}
