"""What happened on the host while a run went on: devices and paths that came and went, alerts, tunables.

Events with one cause are one line, as on the screen Events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from collectors.paths.event_groups import CauseGroup, event_groups
from collectors.session.time_format import clock_text, iso_time
from engine.events import Event, EventKind
from engine.text import safe_text

KINDS = frozenset({EventKind.HOTPLUG, EventKind.PATH, EventKind.ALERT, EventKind.TUNE, EventKind.NOTE})
"""Kinds of events, without what the load and the monitor say of themselves."""
_MOST_LINES = 40


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


def run_event_lines(events: Sequence[Event]) -> Iterator[str]:
    """Write a line for each group; nothing where nothing happened."""
    groups = event_groups(events)
    if not groups:
        return
    yield "events while it ran:"
    for group in groups[:_MOST_LINES]:
        kind = group.first.kind.value
        head = "" if group.text.startswith(f"{kind} ") else f"{kind}: "
        yield f"  {clock_text(group.first.time_ns)}  {head}{group.text}"
    if len(groups) > _MOST_LINES:
        yield f"  {len(groups) - _MOST_LINES:,} more: --json has all of them"
