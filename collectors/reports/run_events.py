"""What happened on the host while a run went on: devices and paths that came and went, alerts, tunables.

Events with one cause are one line, as on the screen Events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from collectors.paths.event_groups import CauseGroup, event_groups
from collectors.session.time_format import iso_time
from engine.events import Event, EventKind
from engine.text import safe_text

KINDS = frozenset(EventKind) - {EventKind.KNOB, EventKind.LOAD, EventKind.MONITOR}
"""Kinds of events, without what the load and the monitor say of themselves."""


def events_between(events: Iterable[Event], begin_ns: int, end_ns: int) -> tuple[Event, ...]:
    """Choose what happened on the host between two times of CLOCK_MONOTONIC."""
    return tuple(event for event in events if event.kind in KINDS and begin_ns <= event.monotonic_ns <= end_ns)


def run_events_document(events: Sequence[Event]) -> list[dict[str, object]]:
    """Write the groups with their events, ready for json.dumps."""
    return [_document(group) for group in event_groups(events)]


def _document(group: CauseGroup) -> dict[str, object]:
    first = group.first
    return {
        "time": iso_time(first.time_ns),
        "time_ns": first.time_ns,
        "kind": first.kind.value,
        "text": group.text,
        "events": [
            {"time_ns": event.time_ns, "text": safe_text(event.text), "data": _safe(event)} for event in group.events
        ],
    }


def _safe(event: Event) -> dict[str, str | int | float | None]:
    return {
        safe_text(name): safe_text(value) if isinstance(value, str) else value for name, value in event.data.items()
    }
