"""What a study needs of a running load, and what watches the devices below it meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

from engine.running.load import Load

__all__ = ["EndedError", "Load", "NotWatched", "Observed", "PointWatch"]

Observed: TypeAlias = Mapping[str, Any]
"""A JSON object with finite numbers; trials keep it as it is."""


class PointWatch(Protocol):
    """Observes the devices below a load over the measured part of a point."""

    def begin(self) -> None:
        """Observe from now on, and forget what was before; may block for a fraction of a second."""

    def end(self) -> Observed | None:
        """Return what was observed up to now; None if nothing was. May block for a fraction of a second."""


class NotWatched:
    """Observes nothing: for loads that nobody samples beside."""

    def begin(self) -> None:
        """Do nothing."""

    def end(self) -> Observed | None:
        """Return nothing."""
        return None


class EndedError(Exception):
    """The measurement was asked to end, or the load ended; it has no result."""
