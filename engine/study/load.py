"""What a study needs of a running load, and what watches the devices below it meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.job.spec import Knobs
from engine.results.result import EpochResult
from engine.running.status import LoadStatus

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


class Load(Protocol):
    """What a study needs of a running load; LoadControl offers it."""

    @property
    def status(self) -> LoadStatus:
        """Where the load stands."""

    def turn(self, knobs: Knobs) -> None:
        """Turn the knobs; blocks."""

    def part_epoch(self) -> None:
        """Open another epoch with the same knobs."""

    def peek(self) -> NDArray[np.uint64] | None:
        """Counters now; None when there is no load any more."""

    def last_epoch(self) -> EpochResult | None:
        """Everything measured since the last turn of the knobs."""

    def wait(self, timeout_s: float) -> bool:
        """Wait for the load to end; whether it has."""


class EndedError(Exception):
    """The measurement was asked to end, or the load ended; it has no result."""
