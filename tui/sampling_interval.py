"""The sampling interval, which the operator changes while the screens are shown."""

from __future__ import annotations

from collections.abc import Callable

from collectors.model import AdjustableSource, Source
from tui.app_state import AppState

INTERVALS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)


def next_interval(interval_s: float, direction: int) -> float:
    """Return the next shorter (-1) or longer (1) interval; at the end of the list the present one."""
    if direction < 0:
        return max((each for each in INTERVALS_S if each < interval_s), default=interval_s)
    return min((each for each in INTERVALS_S if each > interval_s), default=interval_s)


class IntervalChoice:
    """Changes the interval of a source, if it can change."""

    def __init__(self, source: Source, app_state: AppState, request_sample: Callable[[], None]) -> None:
        """Take what makes the source yield a sample at once, after which the new interval holds."""
        self._source = source
        self._app_state = app_state
        self._request_sample = request_sample

    def turn(self, direction: int) -> str:
        """Take the next shorter (-1) or longer (1) interval; returns it as text."""
        return self.use(next_interval(self._app_state.interval_s, direction))

    def use(self, interval_s: float) -> str:
        """Take an interval; returns it as text."""
        if not isinstance(self._source, AdjustableSource):
            return "the interval of this source is fixed"
        self._app_state.interval_s, self._app_state.interval_changed = interval_s, True
        self._source.set_interval(interval_s)
        self._request_sample()
        return f"a sample every {interval_s:g} s"
