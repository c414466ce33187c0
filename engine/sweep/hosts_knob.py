"""The number of hosts of a fleet as an axis of a sweep."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from engine.job.knobs import Knob, Knobs
from engine.job.knobs.kinds import WholeNumber

MOST_HOSTS = 100_000
"""Most hosts of axes of recordings, whose fleet is not there."""
_FIRST = 0
"""Position in lists: before all knobs."""


@dataclass(frozen=True, slots=True)
class FleetKnobs(Knobs):
    """Knobs with the number of hosts that drive them."""

    hosts: int = 1

    @property
    def of_a_host(self) -> Knobs:
        """What each of the hosts is set to."""
        return Knobs(**{each.name: getattr(self, each.name) for each in fields(Knobs)})


@dataclass(frozen=True, slots=True)
class HostsKnob(Knob):
    """How many hosts drive the load; no knob of a job."""

    def turned(self, knobs: Knobs, value: Any) -> Knobs:  # noqa: ANN401 - as a knob
        """Return the same knobs for another number of hosts."""
        return FleetKnobs(**{each.name: getattr(knobs, each.name) for each in fields(Knobs)}, hosts=value)


def hosts_knob(count: int) -> HostsKnob:
    """Make the knob of a fleet with a number of hosts."""
    kind = WholeNumber(1, count, "{} to {}, the hosts of the fleet")
    return HostsKnob("hosts", _FIRST, "hosts", kind, "Hosts that drive the load.", id="hosts", default=count)
