"""History of paths and maps from events: failures, time down, failovers, rate of flapping."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from engine.events import Event, EventKind
from engine.replacing import replace

HOUR_NS = 3600 * 1_000_000_000


class PathFailures(Struct, frozen=True):
    """What happened to one path while it was observed; wall times."""

    failures: int = 0
    last_failure_ns: int | None = None
    last_return_ns: int | None = None
    down_ns: int = 0
    """Time in which it was down, up to its last return."""
    down_since_ns: int | None = None
    """Since when it is down; None if it is up."""

    def lost(self, time_ns: int) -> PathFailures:
        """Return the history after a loss."""
        if self.down_since_ns is not None:
            return self
        return replace(self, failures=self.failures + 1, last_failure_ns=time_ns, down_since_ns=time_ns)

    def back(self, time_ns: int, start_ns: int) -> PathFailures:
        """Return the history after a return; a path not known to be down was so before observation began."""
        since_ns = self.down_since_ns
        if since_ns is None and self.last_return_ns is not None:
            return self
        down_ns = self.down_ns + max(0, time_ns - (start_ns if since_ns is None else since_ns))
        return replace(self, down_ns=down_ns, last_return_ns=time_ns, down_since_ns=None)

    def total_down_ns(self, now_ns: int) -> int:
        """Time in which it was down, until now."""
        return self.down_ns + (0 if self.down_since_ns is None else max(0, now_ns - self.down_since_ns))


class SwitchHistory(Struct, frozen=True):
    """Changes of the group of paths that a map uses."""

    count: int = 0
    last_ns: int | None = None


class PathHistories(Struct, frozen=True, eq=False):
    """Histories of all paths and maps by kernel name, over a range of wall time."""

    start_ns: int | None = None
    """Time at which observation began; None if nothing was observed."""
    end_ns: int = 0
    paths: Mapping[str, PathFailures] = field(default_factory=dict)
    switches: Mapping[str, SwitchHistory] = field(default_factory=dict)

    def flaps_per_hour(self, failures: int) -> float | None:
        """Failures per hour of observation; None if it was shorter than a second."""
        if self.start_ns is None or self.end_ns - self.start_ns < HOUR_NS // 3600:
            return None
        return failures * HOUR_NS / (self.end_ns - self.start_ns)


NO_HISTORY = PathHistories()


def path_histories(events: Iterable[Event], start_ns: int, end_ns: int) -> PathHistories:
    """Collect what the events up to a time say of paths and maps.

    Args:
        events: of a session, by time.
        start_ns: wall time when observation began.
        end_ns: wall time of the moment; later events are left out.
    """
    paths: dict[str, PathFailures] = {}
    switches: dict[str, SwitchHistory] = {}
    for event in events:
        if event.kind is not EventKind.HOTPLUG or event.time_ns > end_ns:
            continue
        for name, usable in _changes(event):
            known = paths.get(name, PathFailures())
            paths[name] = known.back(event.time_ns, start_ns) if usable else known.lost(event.time_ns)
        for name in _words(event, "switched"):
            switches[name] = SwitchHistory(switches.get(name, SwitchHistory()).count + 1, event.time_ns)
    return PathHistories(start_ns, end_ns, paths, switches)


def _changes(event: Event) -> Iterator[tuple[str, bool]]:
    """Yield name and usability of the paths that an event is about; a path that is up and never was down is none."""
    data = event.data
    is_of_state = isinstance(data.get("path"), str) and "usable" in data and "queue_limit" not in data
    if is_of_state and (not data["usable"] or " back: " in event.text):
        yield str(data["path"]), bool(data["usable"])
    if isinstance(data.get("name"), str) and data.get("action") == "removed":
        yield str(data["name"]), False
    yield from ((name, False) for name in _words(event, "lost_paths"))
    yield from ((name, True) for name in _words(event, "back_paths"))


def _words(event: Event, name: str) -> list[str]:
    value = event.data.get(name)
    return value.split() if isinstance(value, str) else []
