"""Events with one cause as one line for people: four paths of one port that fail at once are one event of the port."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from engine.events import Event, EventKind
from engine.text import safe_text

FLEET_HOST = "fleet_host"
"""Key of the host of a fleet in the data of its events; their texts begin with it."""
WINDOW_NS = 5 * 1_000_000_000
"""Time from the first event of a group in which others belong to it: polls of many paths take up to 2 s."""
LEAST_EVENTS = 2
_MOST_NAMED = 6


class CauseGroup(Struct, frozen=True):
    """One event, or several with one cause."""

    events: tuple[Event, ...]
    """Events by time."""
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
    last: dict[tuple[str, str], int] = {}
    for event in events:
        shared = _host(event), _cause(event)
        position = last.get(shared) if shared[1] else None
        if position is not None and event.time_ns - groups[position][0].time_ns <= WINDOW_NS:
            groups[position].append(event)
            continue
        last[shared] = len(groups)
        groups.append([event])
    return [_group(tuple(one)) for one in groups]


def _host(event: Event) -> str:
    """Name the host of a fleet; empty for this one."""
    return str(event.data.get(FLEET_HOST) or "")


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
    if isinstance(event.data.get("name"), str) and _own_text(event).startswith("disk "):
        return f"disks {event.data.get('action')}"
    return ""


def _own_text(event: Event) -> str:
    host = _host(event)
    return event.text.removeprefix(f"{host}: ") if host else event.text


def _group(events: Sequence[Event]) -> CauseGroup:
    first = events[0]
    if len(events) < LEAST_EVENTS:
        return CauseGroup(tuple(events), safe_text(first.text))
    names = list(dict.fromkeys(str(event.data.get("path") or event.data.get("name") or "") for event in events))
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    host = f"{_host(first)}: " if _host(first) else ""
    counted = _counted(_cause(first), len(names))
    return CauseGroup(tuple(events), safe_text(f"{host}{counted} ({', '.join(names[:_MOST_NAMED])}{more})"))


def _counted(cause: str, count: int) -> str:
    """Put the count before what is counted: "host0: 4 paths lost: running, standby"."""
    head, colon, rest = cause.partition(": paths ")
    if colon:
        return f"{head}: {count:,} path{'' if count == 1 else 's'} {rest}"
    return f"{count:,} {cause.replace('disks', 'disk', 1) if count == 1 else cause}"
