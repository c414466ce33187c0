"""Events with one cause as one line for people: four paths of one port that fail at once are one event of the port."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.events import Event, EventKind
from engine.text import safe_text

WINDOW_NS = 5 * 1_000_000_000
"""Time from the first event of a group in which others belong to it: polls of many paths take up to 2 s."""
LEAST_EVENTS = 2
_MOST_NAMED = 6


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """One event, or several with one cause."""

    events: tuple[Event, ...]
    """By time."""
    text: str
    """Safe to print."""

    @property
    def first(self) -> Event:
        """The earliest event."""
        return self.events[0]

    @property
    def is_single(self) -> bool:
        """Whether it is one event only."""
        return len(self.events) == 1


def event_groups(events: Iterable[Event]) -> list[CauseGroup]:
    """Group events by cause; a group has the place of its first event.

    Args:
        events: by time.
    """
    groups: list[list[Event]] = []
    causes: list[str] = []
    last: dict[str, int] = {}
    for event in events:
        cause = _cause(event)
        position = last.get(cause) if cause else None
        if position is not None and event.time_ns - groups[position][0].time_ns <= WINDOW_NS:
            groups[position].append(event)
            continue
        last[cause] = len(groups)
        groups.append([event])
        causes.append(cause)
    return [_group(tuple(one), cause) for one, cause in zip(groups, causes, strict=True)]


def _cause(event: Event) -> str:
    """Name what events must share to be one line, up to the count; empty for an event of its own."""
    if event.kind is EventKind.HOTPLUG:
        return next((cause for of in (_path_cause, _disk_cause) if (cause := of(event))), "")
    if event.kind is EventKind.PATH and isinstance(event.data.get("path"), str) and "errors" in event.data:
        return "paths with new errors"
    return ""


def _path_cause(event: Event) -> str:
    port, now, change = (event.data.get(name) for name in ("port", "now", "change"))
    if not (isinstance(port, str) and isinstance(now, str) and isinstance(change, str)):
        return ""
    return f"{port}: paths {change}: {now}" if port else ""


def _disk_cause(event: Event) -> str:
    if isinstance(event.data.get("name"), str) and event.text.startswith("disk "):
        return f"disks {event.data.get('action')}"
    return ""


def _group(events: Sequence[Event], cause: str) -> CauseGroup:
    if len(events) < LEAST_EVENTS:
        return CauseGroup(tuple(events), safe_text(events[0].text))
    names = list(dict.fromkeys(str(event.data.get("path") or event.data.get("name") or "") for event in events))
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    counted = _counted(cause, len(names))
    return CauseGroup(tuple(events), safe_text(f"{counted} ({', '.join(names[:_MOST_NAMED])}{more})"))


def _counted(cause: str, count: int) -> str:
    """Put the count before what is counted: "host0: 4 paths lost: running, standby"."""
    head, colon, rest = cause.partition(": paths ")
    if colon:
        return f"{head}: {count:,} path{'' if count == 1 else 's'} {rest}"
    return f"{count:,} {cause.replace('disks', 'disk', 1) if count == 1 else cause}"
