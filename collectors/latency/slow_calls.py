"""The slowest NFS calls of intervals as traced in the kernel."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.latency.nfs_subjects import mount_name
from collectors.latency.subjects import LatencySubject
from collectors.model import MISSING, Rows, Sample
from collectors.sampling.slow_rows import command_text
from collectors.tables.nfs.schema import NFS_LATENCY, NFS_SLOW, latency_parts
from engine.text import safe_text

_COLUMNS = tuple(column.id for column in NFS_SLOW.columns)
_ROW, _EXECUTE = _COLUMNS.index("row"), _COLUMNS.index("execute_ns")
_UNKNOWN = int(MISSING)


class SlowCall(Struct, frozen=True):
    """One call and its times; None where unknown."""

    time_ns: int
    """Wall time of its end."""
    key: str
    """Row of NFS_LATENCY."""
    mount: str
    """Mount point; address and number of the RPC client where the mount is not known."""
    operation: str
    transport: str
    """Number among those of the mount, from 1 on; "-" where it is not known."""
    queue_ns: int | None
    rtt_ns: int | None
    execute_ns: int | None
    xid: int | None
    pid: int | None
    """None where a worker of the kernel ended the call, as for reads and writes."""
    command: str


@dataclass(frozen=True, slots=True, eq=False)
class SlowCalls(Sequence[SlowCall]):
    """Calls of a sample, slowest first, as numbers: a history of an hour holds many thousand of them."""

    values: NDArray[np.uint64]
    """Shape (calls, columns of NFS_SLOW); MISSING where unknown."""
    ahead_ns: int
    """Wall time less CLOCK_MONOTONIC."""
    rows: Rows
    """Rows of NFS_LATENCY."""

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, position: int) -> SlowCall: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[SlowCall]: ...
    def __getitem__(self, position: int | slice) -> SlowCall | Sequence[SlowCall]:
        if isinstance(position, slice):
            return [self[each] for each in range(len(self))[position]]
        row: list[int] = self.values[position].tolist()
        known = {name: None if value == _UNKNOWN else value for name, value in zip(_COLUMNS, row, strict=True)}
        key = self.rows.keys[row[_ROW]]
        mount, operation, transport = latency_parts(key)
        return SlowCall(
            time_ns=self.ahead_ns + (known["completed_ns"] or 0),
            key=key,
            mount=mount_name(mount),
            operation=safe_text(operation),
            transport=safe_text(transport),
            queue_ns=known["queue_ns"],
            rtt_ns=known["rtt_ns"],
            execute_ns=known["execute_ns"],
            xid=known["xid"],
            pid=known["pid"],
            command=command_text(known["command_low"], known["command_high"]),
        )

    def of(self, subject: LatencySubject | None) -> SlowCalls:
        """Select the calls of a mount, operation or transport."""
        if subject is None:
            return self
        keys = self.rows.keys
        wanted = [subject.has(keys[row]) for row in self.values[:, _ROW].tolist()]
        return SlowCalls(self.values[np.array(wanted, np.bool_)], self.ahead_ns, self.rows)

    def execute_ns(self, position: int) -> int:
        """Execute time of one of them."""
        return int(self.values[position, _EXECUTE])


NO_CALLS = SlowCalls(np.zeros((0, len(_COLUMNS)), np.uint64), 0, Rows((), ()))


def slow_calls(sample: Sample) -> SlowCalls:
    """List the slowest calls of a sample, slowest first; none if it has none, or of rows that are not there."""
    table, timed = sample.tables.get(NFS_SLOW.name), sample.tables.get(NFS_LATENCY.name)
    if table is None or timed is None or table.schema.columns != NFS_SLOW.columns:
        return NO_CALLS
    values = np.asarray(table.values)
    values = values[(values[:, _ROW] < len(timed.rows)) & (values[:, _EXECUTE] != MISSING)]
    slowest_first = np.argsort(-values[:, _EXECUTE].astype(np.int64), kind="stable")
    return SlowCalls(values[slowest_first], sample.time_ns - sample.monotonic_ns, timed.rows)


def slowest_calls(samples: Iterable[SlowCalls], most: int, subject: LatencySubject | None = None) -> list[SlowCall]:
    """Return the slowest calls of some samples, the slowest first."""
    chosen = (each.of(subject) for each in samples if each)
    every = ((calls, position) for calls in chosen for position in range(len(calls)))
    found = heapq.nlargest(most, every, key=lambda one: one[0].execute_ns(one[1]))
    return [calls[position] for calls, position in found]
