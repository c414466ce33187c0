"""Textual's lines without caches of their own."""

from __future__ import annotations

from textual import strip


class _NoCache:
    """Stores nothing."""

    __slots__ = ()

    def get(self, _key: object, default: object = None) -> object:
        return default

    def __setitem__(self, _key: object, _value: object) -> None:
        return


_NO_CACHE = _NoCache()


def leave_out_strip_caches() -> None:
    """Make every new line share one cache that stores nothing.

    A line has seven caches of its own, which are empty or hold what is not asked for again: our widgets draw a line
    anew only when it changed. With some thousand lines on all screens they are half of the objects that a full
    garbage collection goes through, which takes longer than several frames.
    """
    vars(strip)["FIFOCache"] = lambda _size: _NO_CACHE
