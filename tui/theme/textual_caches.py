"""What Textual caches, kept small: a full garbage collection goes through all of it."""

from __future__ import annotations

from textual import strip
from textual.css.scalar import Scalar
from textual.geometry import Region


class _NoCache:
    """Stores nothing."""

    __slots__ = ()

    def get(self, _key: object, default: object = None) -> object:
        return default

    def __setitem__(self, _key: object, _value: object) -> None:
        return


_NO_CACHE = _NoCache()
_CACHED = [each for owner in (Region, Scalar) for each in vars(owner).values() if hasattr(each, "cache_clear")]
"""Functions with functools.lru_cache."""


def leave_out_strip_caches() -> None:
    """Make every new line share one cache that stores nothing.

    A line has seven caches of its own, which are empty or hold what is not asked for again: our widgets draw a line
    anew only when it changed. With some thousand lines on all screens they are half of the objects that a full
    garbage collection goes through, which takes longer than several frames.
    """
    vars(strip)["FIFOCache"] = lambda _size: _NO_CACHE


def forget_geometry() -> None:
    """Drop results of calculations with positions and lengths: after a new size of the terminal they are of no use."""
    for function in _CACHED:
        function.cache_clear()
