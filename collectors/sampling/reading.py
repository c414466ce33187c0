"""Result of reading one collector at one tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from collectors.model import Histograms, Table
from engine.events import Event


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """Tables and histograms by schema name, and events since the previous reading."""

    tables: Mapping[str, Table] = field(default_factory=dict)
    histograms: Mapping[str, Histograms] = field(default_factory=dict)
    events: tuple[Event, ...] = ()


class Collector(Protocol):
    """One reader of counters; called by one thread, once per tick, and expected to return within milliseconds."""

    def read(self) -> Reading:
        """Read now."""

    def close(self) -> None:
        """Release descriptors and threads; may be called twice."""
