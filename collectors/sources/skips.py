"""Events about skipped ticks, without one for each."""

from __future__ import annotations

from engine.events import Event, EventKind

REPORT_EVERY_NS = 60_000_000_000


class SkipReporter:
    """Counts skipped ticks; the first is reported at once, later ones together once a minute."""

    def __init__(self) -> None:
        self._unreported = 0
        self._quiet_until_ns = 0

    def report(self, skipped: int, now_ns: int) -> tuple[Event, ...]:
        """Add the ticks skipped before this one; return the event to report, if any."""
        self._unreported += skipped
        if not self._unreported or now_ns < self._quiet_until_ns:
            return ()
        ticks = "1 tick was" if self._unreported == 1 else f"{self._unreported:,} ticks were"
        text = f"{ticks} left out: this host or the screen was too busy"
        event = Event.now(EventKind.MONITOR, text, skipped=self._unreported)
        self._unreported, self._quiet_until_ns = 0, now_ns + REPORT_EVERY_NS
        return (event,)
