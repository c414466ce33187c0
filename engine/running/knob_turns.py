"""The knobs of a load: their one owner, and turns, which are checked once, made one after another, noted as events."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from engine.errors import UsageError
from engine.events import EventKind
from engine.job.describe import knob_changes
from engine.job.knobs import Knobs
from engine.job.validate import validate
from engine.newest_work import NewestWork
from engine.replacing import replace
from engine.running.status import LoadState, StatusStore

if TYPE_CHECKING:
    from engine.running.driver import LoadDriver


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


_TURNED_IN_DRIVER = frozenset({LoadState.PREPARING, LoadState.ARMED, LoadState.RUNNING})
_PART_S = 0.2
"""How long the end of an epoch waits for a turn, which ends it as well."""

Done = Callable[[str], None]
"""Called when a turn is over, mostly from another thread, with what was refused or an empty text."""


class KnobTurns:
    """Turns the knobs of one load."""

    def __init__(self, state: KnobState, status_store: StatusStore, driver: LoadDriver | None = None) -> None:
        self.state = state
        self._status_store = status_store
        self._driver = driver
        self._lock = threading.Lock()
        """Guards what is asked for, and whether a request for it waits."""
        self._work = NewestWork("lunscope-knobs")

    def check(self, knobs: Knobs) -> None:
        """Check knobs with the job; never blocks.

        Raises:
            UsageError: a knob is out of range or does not fit the job, or there is no job.
        """
        job = self._status_store.status.job
        if job is None:
            raise UsageError("there is no load whose knobs could be turned")
        validate(replace(job, knobs=knobs))
        if self._driver is not None and self._status_store.status.state in _TURNED_IN_DRIVER:
            self._driver.check_depth(knobs)

    def turn(self, knobs: Knobs) -> None:
        """Turn to these knobs; blocks while targets are checked and workers start.

        Raises:
            UsageError: as `check`, or the targets do not take them; the old knobs stay.
            RefusedError: a target that would be written may not be.
        """
        self.check(knobs)
        self._take(knobs)

    def _take(self, knobs: Knobs) -> None:
        """Turn to knobs that were checked."""
        with self.state.turning:
            before = self.state.now
            if knobs == before.knobs:
                return
            driver = self._driver
            if driver is None or self._status_store.status.state not in _TURNED_IN_DRIVER:
                self.state.put(knobs, None)
                return
            epoch = driver.turn(knobs)
            if epoch is not None:
                self._status_store.change(message=driver.message, badges=driver.badges)
                self._note(before, self.state.now, driver.turned_ns(epoch))

    def request(self, knobs: Knobs, done: Done) -> None:
        """Turn a running load in a thread of its own, unless others are requested before it begins; never blocks.

        Raises:
            UsageError: as `check`, or the load is just starting or ending.
        """
        self.check(knobs)
        if not self.state.now.is_live:
            self.state.prepare(knobs)
            done("")
            return
        with self._lock:
            self.state.ask(knobs)
            self._work.request(functools.partial(self._turn_asked, knobs, done))

    def part_epoch(self) -> None:
        """Open another epoch with the same knobs, if the load runs."""
        driver = self._driver
        # A turn in progress ends the epoch as well.
        if driver is None or not self.state.turning.acquire(timeout=_PART_S):
            return
        try:
            if self._status_store.status.state is LoadState.RUNNING:
                driver.turn(self.state.knobs)
        finally:
            self.state.turning.release()

    def _turn_asked(self, knobs: Knobs, done: Done) -> None:
        error = self._error_of(knobs)
        with self._lock:
            if error:
                self._work.forget()  # What was requested meanwhile is a step from the knobs that were refused.
            if not self._work.is_overtaken:
                self.state.ask(None)
        done(error)

    def _error_of(self, knobs: Knobs) -> str:
        try:
            self._take(knobs)
        except Exception as error:  # reported to the caller
            return str(error) or type(error).__name__
        return ""

    def _note(self, before: InForce, after: InForce, turned_ns: int | None) -> None:
        for change in knob_changes(before.knobs, after.knobs):
            data = {"knob": change.knob, "from": change.before, "to": change.after, "epoch": after.epoch}
            self._status_store.note(EventKind.KNOB, change.text, data, turned_ns)
