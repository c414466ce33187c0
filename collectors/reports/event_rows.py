"""Export of the events of a recording: one row each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from collectors.session.time_format import iso_time
from engine.errors import UsageError
from engine.events import Event
from engine.strict_json import dump_json
from engine.text import safe_text

EVENT_TABLE = "events"
EVENT_SCHEMA = "lunscope.events/1"

Value = str | int | float | None | dict[str, str | int | float | None]

COLUMNS: dict[str, Callable[[Event], Value]] = {
    "time": lambda event: iso_time(event.time_ns),
    "time_ns": lambda event: event.time_ns,
    "kind": lambda event: event.kind.value,
    "text": lambda event: safe_text(event.text),
    "data": lambda event: {
        safe_text(name): safe_text(value) if isinstance(value, str) else value for name, value in event.data.items()
    },
}
"""Columns; `data` has the facts of the event by name, in csv as JSON."""


def event_rows(
    events: Iterable[Event], fields: Iterable[str], start_ns: int | None, end_ns: int | None
) -> Iterator[dict[str, Value]]:
    """Yield the rows of the events in a time range, by time.

    Raises:
        UsageError: a field is none of COLUMNS.
    """
    chosen = tuple(fields) or tuple(COLUMNS)
    unknown = [field for field in chosen if field not in COLUMNS]
    if unknown:
        raise UsageError(f"field {unknown[0]!r}: not in {EVENT_TABLE}; choose from {', '.join(COLUMNS)}")
    return (
        {name: COLUMNS[name](event) for name in chosen}
        for event in sorted(events, key=lambda event: event.time_ns)
        if (start_ns is None or event.time_ns >= start_ns) and (end_ns is None or event.time_ns <= end_ns)
    )


def csv_cell(value: Value) -> str | int | float | None:
    """Write `data` as JSON."""
    return dump_json(value, compact=True) if isinstance(value, dict) else value
