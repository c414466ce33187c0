"""What Textual caches, kept small: a full garbage collection goes through all of it."""

from __future__ import annotations

from rich.segment import Segment
from textual import dom, strip, widget
from textual.cache import LRUCache
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
_MOST_BOXES = 3
"""Boxes of a widget that are kept: Textual keeps 16, those of sizes that a window had long ago."""
_MOST_QUERIES = 64
"""Results of `query_one` that a node keeps: Textual keeps 1024, nearly all from before its children last changed, and
with them the widgets that were found then."""
_CACHED = [
    each
    for owner in (Region, Scalar, Segment)
    for each in (getattr(owner, name) for name in vars(owner))
    if hasattr(each, "cache_clear")
]
"""Functions with functools.lru_cache."""


def leave_out_strip_caches() -> None:
    """Make every new line share one cache that stores nothing.

    A line has seven caches of its own, which are empty or hold what is not asked for again: our widgets draw a line
    anew only when it changed. With some thousand lines on all screens they are half of the objects that a full
    garbage collection goes through, which takes longer than several frames.
    """
    vars(strip)["FIFOCache"] = lambda _size: _NO_CACHE


def keep_few_boxes() -> None:
    """Let widgets made from now on keep few of the boxes they had in windows of other sizes."""
    vars(widget)["LRUCache"] = lambda _size: LRUCache(_MOST_BOXES)


def keep_few_query_results() -> None:
    """Let nodes made from now on keep few of the widgets that were searched for below them."""
    vars(dom)["LRUCache"] = lambda _size: LRUCache(_MOST_QUERIES)


def forget_geometry() -> None:
    """Drop results of calculations with positions, lengths and cuts of texts: with a new size they are of no use."""
    for function in _CACHED:
        function.cache_clear()
