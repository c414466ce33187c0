"""Host facts with the current tier of the figures."""

from __future__ import annotations

from dataclasses import replace

from collectors.model import Tier, Topology


class HostTier:
    """Adds the tier, and why a better one is unavailable, to the host facts; one object per topology and state."""

    def __init__(self) -> None:
        self._of: tuple[Topology, Tier, str] | None = None
        self._topology = Topology()

    def apply(self, topology: Topology, tier: Tier, refusal: str) -> Topology:
        """Return the topology with these facts; the same object until something changes."""
        host = topology.host
        if host.tier is tier and not refusal:
            return topology
        if self._of is None or self._of[0] is not topology or self._of[1:] != (tier, refusal):
            notices = (*host.notices, *([f"no exact time: {refusal}"] if refusal else []))
            self._of = topology, tier, refusal
            self._topology = replace(topology, host=replace(host, tier=tier, notices=notices))
        return self._topology
