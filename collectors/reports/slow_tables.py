"""Exported tables of the slowest I/Os and NFS calls: their columns, and their rows out of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from collectors.latency.slow_calls import SlowCall, slow_calls
from collectors.latency.slow_ios import SlowIo, by_number, slow_ios
from collectors.model import Sample, Step
from collectors.session.time_format import iso_time
from engine.errors import UsageError
from engine.text import safe_text

Value = str | int | float | None
_Slow = TypeVar("_Slow", SlowIo, SlowCall)


class SlowTable(Struct, Generic[_Slow], frozen=True):
    """One of them."""

    name: str
    columns: Mapping[str, Callable[[_Slow], Value]]
    listed: Callable[[Sample], Iterable[_Slow]]

    @property
    def schema(self) -> str:
        """Version of its documents."""
        return f"lunscope.{self.name}/1"

    def chosen(self, fields: Sequence[str]) -> tuple[str, ...]:
        """Return these columns, or all.

        Raises:
            UsageError: a field is none of them.
        """
        unknown = [field for field in fields if field not in self.columns]
        if unknown:
            raise UsageError(f"field {unknown[0]!r}: not in {self.name}; choose from {', '.join(self.columns)}")
        return tuple(fields) or tuple(self.columns)

    def rows(self, steps: Iterable[Step], chosen: Sequence[str]) -> Iterator[dict[str, Value]]:
        """Yield columns of each, by time, interval by interval."""
        for step in steps:
            for slow in sorted(self.listed(step.current), key=lambda each: each.time_ns):
                yield {name: self.columns[name](slow) for name in chosen}


def _ms(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / 1e6


SLOW_IOS: SlowTable[SlowIo] = SlowTable(
    "slow_ios",
    {
        "time": lambda io: iso_time(io.time_ns),
        "time_ns": lambda io: io.time_ns,
        "name": lambda io: safe_text(io.device),
        "id": lambda io: safe_text(io.device_key),
        "operation": lambda io: io.operation,
        "sector": lambda io: io.sector,
        "size_bytes": lambda io: io.size_bytes,
        "tag_wait_ms": lambda io: _ms(io.tag_wait_ns),
        "queue_ms": lambda io: _ms(io.queue_ns),
        "service_ms": lambda io: _ms(io.service_ns),
        "latency_ms": lambda io: _ms(io.latency_ns),
        "pid": lambda io: io.pid,
        "command": lambda io: safe_text(io.command),
        "cgroup": lambda io: io.cgroup,
    },
    lambda sample: slow_ios(sample, by_number(sample.topology.devices)),
)
"""Times in milliseconds, sectors of 512 bytes, the cgroup by its inode number."""

SLOW_CALLS: SlowTable[SlowCall] = SlowTable(
    "slow_calls",
    {
        "time": lambda call: iso_time(call.time_ns),
        "time_ns": lambda call: call.time_ns,
        "mount": lambda call: call.mount,
        "id": lambda call: safe_text(call.key),
        "operation": lambda call: call.operation,
        "transport": lambda call: call.transport,
        "queue_ms": lambda call: _ms(call.queue_ns),
        "rtt_ms": lambda call: _ms(call.rtt_ns),
        "execute_ms": lambda call: _ms(call.execute_ns),
        "xid": lambda call: None if call.xid is None else f"0x{call.xid:08x}",
        "pid": lambda call: call.pid,
        "command": lambda call: call.command,
    },
    slow_calls,
)
"""Times in milliseconds; XIDs as packet analysers show them."""

SLOW_TABLES: Mapping[str, SlowTable[Any]] = {table.name: table for table in (SLOW_IOS, SLOW_CALLS)}
