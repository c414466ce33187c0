"""Which stretch of time a heat map shows: the last minutes, or a closer look that may stand still."""

from __future__ import annotations

SECOND_NS = 1_000_000_000
SHORTEST_NS = 5 * SECOND_NS


class TimeWindow:
    """Follows the newest moment until it is fixed on another."""

    def __init__(self) -> None:
        self.newest_ns = 0
        self._whole_ns = SHORTEST_NS
        self._span_ns: int | None = None
        self._end_ns: int | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether it stands still while time goes on."""
        return self._end_ns is not None

    def follow(self, newest_ns: int, whole_ns: int) -> None:
        """Take the newest moment, and how much there is to show; a closer look stays as it is."""
        self.newest_ns, self._whole_ns = newest_ns, whole_ns
        if self._span_ns is not None and self._span_ns >= whole_ns:
            self._span_ns = None
        if self._end_ns is not None and self._end_ns > newest_ns:
            self._end_ns = None

    def bounds(self) -> tuple[int, int]:
        """Begin and end of what is shown."""
        end_ns = self.newest_ns if self._end_ns is None else self._end_ns
        return end_ns - self._length_ns, end_ns

    def zoom(self, factor: float, around_ns: int | None) -> None:
        """Show `factor` times as much, around a moment; without one the end stays where it is."""
        wanted = max(round(self._length_ns * factor), SHORTEST_NS)
        self._span_ns = wanted if wanted < self._whole_ns else None
        if self._span_ns is None:
            self._end_ns = None
        if around_ns is not None:
            self._fix(around_ns + self._length_ns // 2)
            self.reach(around_ns)

    def reach(self, time_ns: int) -> None:
        """Move no further than needed to have a moment in sight, with some room around it."""
        start_ns, end_ns = self.bounds()
        if not start_ns < time_ns <= end_ns:
            self._fix(time_ns + self._length_ns // 2)

    def reset(self) -> None:
        """Show all, up to the newest."""
        self._span_ns = self._end_ns = None

    @property
    def _length_ns(self) -> int:
        return self._whole_ns if self._span_ns is None else self._span_ns

    def _fix(self, end_ns: int) -> None:
        self._end_ns = end_ns if end_ns < self.newest_ns else None
