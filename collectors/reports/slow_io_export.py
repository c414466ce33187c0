"""Export of the slowest I/Os of a recording: one row per I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

from collectors.latency.slow_ios import SlowIo, by_number, slow_ios
from collectors.model import Step
from collectors.reports.csv_text import csv_line, text_cell
from collectors.session.time_format import iso_time
from engine.errors import UsageError
from engine.text import safe_text

SLOW_TABLE = "slow_ios"
SCHEMA = "lunscope.slow_ios/1"

_Value = str | int | float | None


def _ms(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / 1e6


COLUMNS: dict[str, Callable[[SlowIo], _Value]] = {
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
}
"""Columns; times in milliseconds, sectors of 512 bytes, the cgroup by its inode number."""


def slow_io_lines(steps: Iterable[Step], format_: str, fields: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of an export, without line ends; missing is empty in csv and null in jsonl.

    Raises:
        UsageError: a field is none of COLUMNS.
    """
    unknown = [field for field in fields if field not in COLUMNS]
    if unknown:
        raise UsageError(f"field {unknown[0]!r}: not in {SLOW_TABLE}; choose from {', '.join(COLUMNS)}")
    chosen = tuple(fields) or tuple(COLUMNS)
    rows = ({name: COLUMNS[name](io) for name in chosen} for io in _all(steps))
    yield from _csv(rows, chosen) if format_ == "csv" else _jsonl(rows)


def _all(steps: Iterable[Step]) -> Iterator[SlowIo]:
    """By time, interval by interval."""
    for step in steps:
        found = slow_ios(step.current, by_number(step.current.topology.devices))
        yield from sorted(found, key=lambda io: io.time_ns)


def _csv(rows: Iterable[dict[str, _Value]], chosen: Sequence[str]) -> Iterator[str]:
    yield csv_line(chosen)
    for row in rows:
        yield csv_line(map(_cell, row.values()))


def _cell(value: _Value) -> _Value:
    return text_cell(value) if isinstance(value, str) else value


def _jsonl(rows: Iterable[dict[str, _Value]]) -> Iterator[str]:
    for row in rows:
        yield json.dumps({"schema": SCHEMA, **row}, allow_nan=False, separators=(",", ":"))
