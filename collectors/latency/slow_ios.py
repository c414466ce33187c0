"""The slowest I/Os of an interval as traced in the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.model import MISSING, Device, Sample, Table
from collectors.sampling.slow_rows import command_text
from collectors.tables.block.schema import SLOW_IO
from engine import _native

_OPERATIONS = {0: "read", 1: "write", 2: "flush", 3: "discard", 5: "erase", 7: "append", 9: "zeroes"}
"""enum req_op (include/linux/blk_types.h)."""
_NEEDED = {"completed_ns", "major", "minor"}
_COLUMNS = tuple(column.id for column in SLOW_IO.columns)
_TIMES = [_COLUMNS.index(name) for name in ("tag_wait_ns", "queue_ns", "service_ns")]
_MAJOR, _MINOR = _COLUMNS.index("major"), _COLUMNS.index("minor")
_UNKNOWN = int(MISSING)


class SlowIo(Struct, frozen=True):
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


@dataclass(frozen=True, slots=True, eq=False)
class SlowIos(Sequence[SlowIo]):
    """I/Os of a sample, slowest first, as compressed numbers: a history of an hour holds many thousand of them."""

    data: bytes
    ios: int
    ahead_ns: int
    """Wall time less CLOCK_MONOTONIC."""
    devices: Mapping[tuple[int, int], Device]

    @classmethod
    def of(cls, values: NDArray[np.uint64], ahead_ns: int, devices: Mapping[tuple[int, int], Device]) -> SlowIos:
        """Pack I/Os of the shape that `values` has."""
        return cls(_native.compress(values.T.tobytes()), len(values), ahead_ns, devices)

    @property
    def values(self) -> NDArray[np.uint64]:
        """Shape (I/Os, columns of SLOW_IO); MISSING where unknown."""
        size = self.ios * len(_COLUMNS)
        flat = np.frombuffer(_native.decompress(self.data, size * np.dtype(np.uint64).itemsize), np.uint64)
        return flat.reshape(len(_COLUMNS), self.ios).T

    def __len__(self) -> int:
        return self.ios

    def __iter__(self) -> Iterator[SlowIo]:
        return (self._made(row) for row in self.values.tolist())

    @overload
    def __getitem__(self, position: int) -> SlowIo: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[SlowIo]: ...
    def __getitem__(self, position: int | slice) -> SlowIo | Sequence[SlowIo]:
        if isinstance(position, slice):
            return [self[each] for each in range(len(self))[position]]
        return self._made(self.values[position].tolist())

    def _made(self, row: Sequence[int]) -> SlowIo:
        known = {name: None if value == _UNKNOWN else value for name, value in zip(_COLUMNS, row, strict=True)}
        return _slow_io(known, self.ahead_ns, self.devices)


def slow_ios(sample: Sample, devices: Mapping[tuple[int, int], Device]) -> SlowIos:
    """List the slowest I/Os of a sample, slowest first; none if the tier has none."""
    table = sample.tables.get(SLOW_IO.name)
    if table is None or not {column.id for column in table.schema.columns} >= _NEEDED:
        return NO_IOS
    values = _in_order(table)
    slowest_first = np.argsort(-latencies_ns(values), kind="stable")
    return SlowIos.of(values[slowest_first], sample.time_ns - sample.monotonic_ns, devices)


def latencies_ns(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Sum of the known times of each I/O; `values` as in SlowIos."""
    times = values[:, _TIMES]
    latency_ns: NDArray[np.int64] = np.where(times == MISSING, 0, times).astype(np.int64).sum(axis=1)
    return latency_ns


def device_numbers(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of the device of each I/O, as `device_number` makes it; `values` as in SlowIos."""
    return (values[:, _MAJOR] << 20 | values[:, _MINOR]).astype(np.int64)


def device_number(major: int, minor: int) -> int:
    """Join major and minor, which has 20 bits (include/linux/kdev_t.h)."""
    return major << 20 | minor


def by_number(devices: Mapping[str, Device]) -> dict[tuple[int, int], Device]:
    """Index devices by major and minor."""
    return {(device.major, device.minor): device for device in devices.values()}


NO_IOS = SlowIos.of(np.zeros((0, len(_COLUMNS)), np.uint64), 0, {})


def _in_order(table: Table) -> NDArray[np.uint64]:
    """Values in the columns of SLOW_IO; a column that an old recording lacks is MISSING."""
    if table.schema.columns == SLOW_IO.columns:
        return np.asarray(table.values)
    values = np.full((len(table.rows), len(_COLUMNS)), MISSING, np.uint64)
    for position, column in enumerate(table.schema.columns):
        if column.id in _COLUMNS:
            values[:, _COLUMNS.index(column.id)] = table.values[:, position]
    return values


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
        command=command_text(row.get("command_low"), row.get("command_high")),
        cgroup=row.get("cgroup"),
    )
