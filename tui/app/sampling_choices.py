"""What the operator changes of sampling while the screens are shown: the interval, and tracing of tag waits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from collectors.model import AdjustableSource, Source, TagWaitWatcher

if TYPE_CHECKING:
    from tui.app.app import LunscopeApp

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


class SamplingKeys:
    """Changes the interval of a source, if it can change, and the tracing of tag waits."""

    def __init__(self, app: LunscopeApp, source: Source, request_sample: Callable[[], None]) -> None:
        """Take what makes the source yield a sample at once, after which the new interval holds."""
        self._app, self._state = app, app.app_state
        self._source = source
        self._request_sample = request_sample
        self.tags = TagWaitChoice(source)

    def action_session_sooner(self) -> None:
        """Sample at the next shorter interval."""
        self._turn(-1)

    def action_session_later(self) -> None:
        """Sample at the next longer interval."""
        self._turn(1)

    def action_session_tags(self) -> None:
        """Trace waits for free tags always, never, or while a queue is full (auto)."""
        self._app.notify(self.tags.turn(), markup=False)

    def _turn(self, direction: int) -> None:
        said = self.use_interval(next_interval(self._state.interval_s, direction))
        self._app.notify(said, timeout=2, markup=False)
        self._app.paint()

    def use_interval(self, interval_s: float) -> str:
        """Take an interval; returns it as text."""
        if not isinstance(self._source, AdjustableSource):
            return "the interval of this source is fixed"
        self._state.interval_s, self._state.interval_changed = interval_s, True
        self._source.set_interval(interval_s)
        self._request_sample()
        return f"a sample every {interval_s:g} s"
