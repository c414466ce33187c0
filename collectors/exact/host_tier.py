"""The topology as a sample tells it: with the tier that its figures have now."""

from __future__ import annotations

from dataclasses import replace

from collectors.model import Tier, Topology


class HostTier:
    """Puts the tier and what hinders a better one into the host facts; one object per topology and state."""

    def __init__(self) -> None:
        self._of: tuple[Topology, Tier, str] | None = None
        self._told = Topology()

    def tell(self, topology: Topology, tier: Tier, hindrance: str) -> Topology:
        """Return the topology with these facts; the same object as long as nothing changed."""
        host = topology.host
        if host.tier is tier and not hindrance:
            return topology
        if self._of is None or self._of[0] is not topology or self._of[1:] != (tier, hindrance):
            notices = (*host.notices, *([f"no exact time: {hindrance}"] if hindrance else []))
            self._of = topology, tier, hindrance
            self._told = replace(topology, host=replace(host, tier=tier, notices=notices))
        return self._told
