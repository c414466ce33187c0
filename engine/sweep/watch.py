"""What is watched while a point is measured, beside the load itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

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
