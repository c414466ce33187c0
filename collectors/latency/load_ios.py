"""The slowest I/Os of an interval as timed by the load's engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.model import MISSING, Rows, Sample
from collectors.tables.load.schema import LOAD, SLOW_LOAD

_DIRECTIONS = ("read", "write")


class LoadIo(Struct, frozen=True):
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


@dataclass(frozen=True, slots=True, eq=False)
class LoadIos(Sequence[LoadIo]):
    """I/Os of a sample, slowest first, as numbers: a history of an hour holds many thousand of them."""

    values: NDArray[np.uint64]
    """Shape (I/Os, columns of SLOW_LOAD)."""
    ahead_ns: int
    """Wall time less CLOCK_MONOTONIC."""
    targets: Rows
    """Rows of the load table."""

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, position: int) -> LoadIo: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[LoadIo]: ...
    def __getitem__(self, position: int | slice) -> LoadIo | Sequence[LoadIo]:
        if isinstance(position, slice):
            return [self[each] for each in range(len(self))[position]]
        target, direction, offset, size, issued_ns, latency_ns, major, minor = self.values[position].tolist()
        key, name = self.targets.keys[target], self.targets.names[target]
        issued = self.ahead_ns + issued_ns
        return LoadIo(key, name, _DIRECTIONS[direction], offset, size, issued, latency_ns, major, minor)

    def latency_ns(self, position: int) -> int:
        """Latency of one of them."""
        return int(self.values[position, _LATENCY])

    def devices(self, keys: frozenset[str] = frozenset()) -> set[tuple[int, int]]:
        """Major and minor of the devices that these targets are or lie on; without keys those of all targets."""
        return {
            (int(major), int(minor))
            for target, major, minor in self.values[:, _TARGET_AND_DEVICE].tolist()
            if not keys or self.targets.keys[target] in keys
        }


_IDS = tuple(column.id for column in SLOW_LOAD.columns)
_TARGET, _DIRECTION, _ISSUED = (_IDS.index(name) for name in ("target", "direction", "issued_ns"))
_LATENCY = _IDS.index("latency_ns")
_TARGET_AND_DEVICE = [_TARGET, _IDS.index("major"), _IDS.index("minor")]
_NONE = LoadIos(np.zeros((0, len(_IDS)), np.uint64), 0, Rows((), ()))


def slow_load_ios(sample: Sample) -> LoadIos:
    """List the slowest I/Os of the load, slowest first; none if there is no load."""
    table, load = sample.tables.get(SLOW_LOAD.name), sample.tables.get(LOAD.name)
    if table is None or load is None or table.schema.columns != SLOW_LOAD.columns:
        return _NONE
    values = table.values
    is_known = (values[:, _TARGET] < len(load.rows)) & (values[:, _DIRECTION] < len(_DIRECTIONS))
    is_known &= values[:, _ISSUED] != MISSING
    return LoadIos(values[is_known], sample.time_ns - sample.monotonic_ns, load.rows)
