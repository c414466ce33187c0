"""The one owner of the knobs of a load."""

from __future__ import annotations

import threading

from msgspec import Struct

from engine.errors import UsageError
from engine.job.spec import Knobs


class InForce(Struct, frozen=True):
    """The knobs that a load runs with, or will start with."""

    knobs: Knobs
    epoch: int = 0
    is_live: bool = False
    """Whether a load runs with them."""


class KnobState:
    """The knobs in force and those requested; every member may be called from any thread.

    The only owner of the knobs of a load. Jobs hold those to start with, and results those of each epoch.
    """

    def __init__(self, knobs: Knobs) -> None:
        self.turning = threading.Lock()
        """Held while turning the knobs, or starting or ending the load."""
        self._now = InForce(knobs)
        self._asked: Knobs | None = None

    @property
    def now(self) -> InForce:
        """The knobs in force, with their epoch."""
        return self._now

    @property
    def knobs(self) -> Knobs:
        """The knobs in force."""
        return self._now.knobs

    @property
    def asked(self) -> Knobs:
        """The knobs last requested: what is shown, and what the next step starts from."""
        asked = self._asked
        return self._now.knobs if asked is None else asked

    def ask(self, knobs: Knobs | None) -> None:
        """Set what is requested and not in force yet; None: nothing is."""
        self._asked = knobs

    def begin(self) -> None:
        """Note that the load starts with these knobs; by the holder of `turning`."""
        self._now = InForce(self.knobs, 0, is_live=True)

    def put(self, knobs: Knobs, epoch: int | None) -> None:
        """Note what the engine took, and the epoch it opened if it runs; by the holder of `turning`."""
        now = self._now
        self._now = InForce(knobs, now.epoch if epoch is None else epoch, now.is_live)

    def end(self) -> None:
        """Note that the load is over; the knobs stay for the next."""
        self._now = InForce(self.knobs, self._now.epoch)

    def prepare(self, knobs: Knobs) -> None:
        """Replace the knobs that the next start takes; never blocks.

        Raises:
            UsageError: the load runs, or is about to.
        """
        if not self.turning.acquire(blocking=False):
            raise UsageError("wait: the load is starting or ending")
        try:
            if self._now.is_live:
                raise UsageError("the load runs: turn its knobs, or stop it first")
            self.put(knobs, None)
        finally:
            self.turning.release()
