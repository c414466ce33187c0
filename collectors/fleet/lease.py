"""The lease of an agent: it may issue I/O only while it hears from its controller, which renews it in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

LEASE_S = 3.0
"""Time without a word from the controller after which nothing may be outstanding."""
DRAIN_S = 0.75
"""Part of the lease that is kept for the I/Os that are outstanding when the silence is noticed."""
RENEW_S = 0.5
"""How often a controller renews the leases of agents that may drive a load."""
_POLL_S = 0.05
_SHARE = 0.95
"""Share of the interval of renewals: samples come on whole seconds, and no host is asked just then each time."""


class Lease:
    """Calls `lost` once, in a thread of its own, when nothing was heard for LEASE_S less DRAIN_S, or `end` was called.

    The end of the stream alone is not enough: a stopped controller, a half-open TCP connection and a cut network leave
    it open.
    """

    def __init__(self, lost: Callable[[str], None], lease_s: float = LEASE_S) -> None:
        self._lost = lost
        self._silence_s = lease_s - DRAIN_S
        self._heard_s = time.monotonic()
        self._reason = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lunscope-lease", daemon=True)

    def start(self) -> None:
        """Begin."""
        self.renew()
        self._thread.start()

    def renew(self) -> None:
        """Note that the controller was heard."""
        self._heard_s = time.monotonic()

    def end(self, reason: str) -> None:
        """End it now: the stream has ended."""
        self._reason = reason
        self._ended.set()

    @property
    def holds(self) -> bool:
        """Whether the controller was heard in time; true or not, whenever the thread that watches runs."""
        return not self._ended.is_set() and time.monotonic() - self._heard_s < self._silence_s

    def wait(self) -> None:
        """Return when `lost` has returned."""
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_POLL_S):
            silent_s = time.monotonic() - self._heard_s
            if silent_s >= self._silence_s:
                self._reason = f"nothing heard from the controller for {silent_s:.1f} s"
                break
        self._lost(self._reason)


class Renewals:
    """Spreads the renewals over the interval: answers that come at once wait for each other, and seem to be late."""

    def __init__(self, hosts: Collection[str], renew_s: float) -> None:
        self._hosts = tuple(hosts)
        self._apart_s = renew_s * _SHARE / max(1, len(hosts))
        self._begun_s: float | None = None
        self._renewed = 0
        """Renewals up to now, without those that were too late."""

    def due(self, now_s: float) -> list[str]:
        """Return the hosts to renew now, each once however long ago the last call was."""
        if self._begun_s is None:
            self._begun_s = now_s
        hosts, first = self._hosts, self._renewed
        self._renewed = int((now_s - self._begun_s) / self._apart_s) + 1
        return [hosts[number % len(hosts)] for number in range(max(first, self._renewed - len(hosts)), self._renewed)]
