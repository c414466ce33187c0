"""The setting for tag wait tracing (on, off, auto), which costs two more probes per I/O."""

from __future__ import annotations

from collectors.model import Source, TagWaitWatcher

_WORDS = {
    None: "tag wait tracing auto: while a queue is full",
    True: "tag wait tracing on: column Tag",
    False: "tag wait tracing off",
}
_NEXT = {None: True, True: False, False: None}
_NAMES = {"auto": None, "on": True, "off": False}
TAG_WAIT_CHOICES = tuple(_NAMES)
"""The default first."""


class TagWaitChoice:
    """Cycles through auto, on, off."""

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
        return _WORDS[self._wanted]
