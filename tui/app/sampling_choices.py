"""What the operator changes of sampling while the screens are shown: the interval, and tracing of tag waits."""

from __future__ import annotations

from collections.abc import Callable

from collectors.model import AdjustableSource, Source, TagWaitWatcher
from tui.app_state import AppState

INTERVALS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
_TAG_WAIT_WORDS = {
    None: "tag wait tracing auto: while a queue is full",
    True: "tag wait tracing on: column Tag",
    False: "tag wait tracing off",
}
_NEXT = {None: True, True: False, False: None}
_NAMES = {"auto": None, "on": True, "off": False}
TAG_WAIT_CHOICES = tuple(_NAMES)
"""The default first."""


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


class TagWaitChoice:
    """Tracing of tag waits, which costs two more probes per I/O: on, off, or auto."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._wanted: bool | None = None

    def turn(self) -> str:
        """Take the next setting; returns it as text."""
        return self._take(_NEXT[self._wanted])

    @property
    def name(self) -> str:
        """The setting in force."""
        return next(name for name, wanted in _NAMES.items() if wanted is self._wanted)

    def use(self, name: str) -> str:
        """Take one of TAG_WAIT_CHOICES; returns it as text."""
        return self._take(_NAMES[name])

    def _take(self, wanted: bool | None) -> str:
        if not isinstance(self._source, TagWaitWatcher):
            return "this source cannot trace tag waits"
        self._wanted = wanted
        self._source.watch_tag_wait(self._wanted)
        return _TAG_WAIT_WORDS[self._wanted]
