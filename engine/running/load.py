"""The one interface of a load whose knobs are turned and whose counters are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.job.knobs import Knobs
from engine.running.status import LoadStatus

if TYPE_CHECKING:
    from engine.results.result import EpochResult
    from engine.running.control import LoadControl
    from engine.running.group_control import GroupControl

    Loads: TypeAlias = LoadControl | GroupControl
    """One load of this host, or several at the same time, each of which is a Load."""


class Load(Protocol):
    """A load that runs: of this host (LoadControl), or of the hosts of a fleet (FleetSweepLoad).

    The agent of a host offers the same in frames (AgentLoad).
    """

    @property
    def status(self) -> LoadStatus:
        """Where the load stands."""

    def turn(self, knobs: Knobs) -> None:
        """Turn the knobs; blocks."""

    def part_epoch(self) -> None:
        """Open another epoch with the same knobs."""

    def peek(self) -> NDArray[np.uint64] | None:
        """Counters now, columns as the raw table load; None when there is no load any more."""

    def last_epoch(self) -> EpochResult | None:
        """Everything measured since the last turn of the knobs."""

    def wait(self, timeout_s: float) -> bool:
        """Wait for the load to end; whether it has."""
