"""The operator's say on waits for free tags, which cost two more probes for every I/O."""

from __future__ import annotations

from collectors.model import Source, TagWaitWatcher

_WORDS = {
    None: "waits for free tags are watched while a queue is full",
    True: "waits for free tags are watched: Tag beside Q",
    False: "waits for free tags are not watched",
}
_NEXT = {None: True, True: False, False: None}


class TagWaitChoice:
    """Goes round: by need, always, never."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._wanted: bool | None = None

    def turn(self) -> str:
        """Take the next choice; what is so from now on, in words."""
        if not isinstance(self._source, TagWaitWatcher):
            return "this source cannot watch waits for tags"
        self._wanted = _NEXT[self._wanted]
        self._source.watch_tag_wait(self._wanted)
        return _WORDS[self._wanted]
