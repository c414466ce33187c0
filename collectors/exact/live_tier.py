"""The exact tier of a live source: when it is attached, and how samples and host facts report it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from collectors.model import Rows, Tier, Topology
from engine.errors import LunscopeError
from engine.replacing import replace

if TYPE_CHECKING:
    from collectors.exact.collector import ExactCollector
    from collectors.exact.tracer import Tracer
    from collectors.exact.tracer_supervisor import TracerSupervisor


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


class LiveTier:
    """Attaches a tracer if `wanted` is "auto" or "exact"; before the first sample only if that sample may wait.

    Attaching takes 0.1 s of CPU. A first screen does not wait for it; a report waits up to `patience_s`, so that all
    its figures are of one tier.
    """

    def __init__(
        self,
        wanted: str,
        patience_s: float,
        open_tracer: Callable[[], Tracer],
        disks: Callable[[], Rows],
        topology: Callable[[], Topology],
        *,
        procfs: str = "/proc",
    ) -> None:
        self._wanted = wanted
        self._patience_s = patience_s
        self._open_tracer = open_tracer
        self._read_from = disks, topology, procfs
        self._host_tier = HostTier()
        self._started = False
        self._making = threading.Lock()
        self._made: tuple[TracerSupervisor, ExactCollector] | None = None

    @property
    def collector(self) -> ExactCollector:
        """Reads the exact counters."""
        return self._make()[1]

    @property
    def _supervisor(self) -> TracerSupervisor:
        return self._make()[0]

    def _make(self) -> tuple[TracerSupervisor, ExactCollector]:
        """Import what they need at the first use, which is after the first screen is drawn; threads ask for them."""
        with self._making:
            if self._made is None:
                from collectors.exact.collector import ExactCollector  # noqa: PLC0415
                from collectors.exact.tracer_supervisor import TracerSupervisor  # noqa: PLC0415

                supervisor = TracerSupervisor(self._open_tracer)
                self._made = supervisor, ExactCollector(supervisor, *self._read_from)
            return self._made

    def close(self) -> None:
        """Detach, and stop the thread that attaches."""
        if self._made is not None:
            self.collector.close()

    @property
    def wanted(self) -> bool:
        """Whether programs may be attached in the kernel."""
        return self._wanted in {"auto", "exact"}

    @property
    def delivers(self) -> bool:
        """Whether the last reading had exact counters."""
        return self.collector.delivers

    @property
    def counts_busy(self) -> bool:
        """Whether the last reading had exact busy time."""
        return self.collector.counts_busy

    def before_first_sample(self) -> None:
        """Attach now if the first sample may wait for it.

        Raises:
            LunscopeError: the exact tier is required and unavailable.
        """
        if not self._patience_s or not self._start():
            return
        if not self._supervisor.wait(self._patience_s) and self._wanted == "exact":
            late = f"not attached in {self._patience_s:g} s (busy host?): try again, or use --tier auto"
            raise LunscopeError(f"tier exact: {self._supervisor.refusal or late}")

    def after_first_sample(self) -> None:
        """Attach in the background."""
        self._start()

    def with_tier(self, topology: Topology, otherwise: Tier) -> Topology:
        """Return the topology with the current tier; `otherwise` is the tier without exact counters."""
        if self.delivers:
            return self._host_tier.apply(topology, Tier.EXACT, "")
        return self._host_tier.apply(topology, otherwise, self._supervisor.refusal)

    def _start(self) -> bool:
        """Start attaching, once; return whether this call started it."""
        if self._started or not self.wanted:
            return False
        self._started = True
        self._supervisor.start()
        return True
