"""One cache as its reader found it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class CacheEntry(Struct, frozen=True):
    """Key and name of the row, and the raw values it has, by column of the CACHE table."""

    key: str
    name: str
    values: Mapping[str, int]
