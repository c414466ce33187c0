"""The exact tier of a live source: when it is attached, and what the samples say of it."""

from __future__ import annotations

from collections.abc import Callable

from collectors.exact.collector import ExactCollector
from collectors.exact.host_tier import HostTier
from collectors.exact.tracer import Tracer
from collectors.exact.tracer_supervisor import Attachment
from collectors.model import Rows, Tier, Topology
from engine.errors import LunscopeError


class LiveTier:
    """Attaches a tracer if `wanted` is "auto" or "exact", and never before the first sample unless it may wait for it.

    Attaching takes a tenth of a second of CPU, which a first screen is not to wait for; a report is, up to
    `patience_s`, so that all its figures are of one tier.
    """

    def __init__(
        self,
        wanted: str,
        patience_s: float,
        open_tracer: Callable[[], Tracer],
        disks: Callable[[], Rows],
        topology: Callable[[], Topology],
    ) -> None:
        self._wanted = wanted
        self._patience_s = patience_s
        self._attachment = Attachment(open_tracer)
        self._teller = HostTier()
        self._started = False
        self.collector = ExactCollector(self._attachment, disks, topology)

    @property
    def delivers(self) -> bool:
        """Whether the last reading had exact counters."""
        return self.collector.delivers

    def before_first_sample(self) -> None:
        """Attach now if the first sample may wait for it.

        Raises:
            LunscopeError: the exact tier is insisted on and is not to be had.
        """
        if not self._patience_s or not self._start():
            return
        if not self._attachment.wait(self._patience_s) and self._wanted == "exact":
            raise LunscopeError(f"tier exact: {self._attachment.refusal or 'not ready in time'}")

    def after_first_sample(self) -> None:
        """Attach beside the ticks."""
        self._start()

    def told(self, topology: Topology, otherwise: Tier) -> Topology:
        """Return the topology with the tier that figures have now; `otherwise` is that without exact counters."""
        if self.delivers:
            return self._teller.tell(topology, Tier.EXACT, "")
        return self._teller.tell(topology, otherwise, self._attachment.refusal)

    def _start(self) -> bool:
        """Start attaching, once; whether it was started by this call."""
        if self._started or self._wanted not in {"auto", "exact"}:
            return False
        self._started = True
        self._attachment.start()
        return True
