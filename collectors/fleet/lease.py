"""The lease of an agent: it may issue I/O only while it hears from its controller."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LEASE_S = 3.0
"""After this time without a word from the controller nothing may be outstanding."""
DRAIN_S = 0.75
"""How much of it is kept for the I/Os that are outstanding when the silence is noticed."""
RENEW_S = 0.5
"""How often a controller renews the leases."""
_POLL_S = 0.05


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
