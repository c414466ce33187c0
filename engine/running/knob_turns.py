"""Turns of the knobs of a load: checked once, one after another, and noted as events."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.events import EventKind
from engine.job.describe import knob_changes
from engine.job.knobs import Knobs
from engine.job.validate import validate
from engine.replacing import replace
from engine.running.knob_state import InForce, KnobState
from engine.running.status import LoadState, StatusStore

if TYPE_CHECKING:
    from engine.running.driver import LoadDriver

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
        """Of the request that waits, and whether there is a thread that takes it."""
        self._next: tuple[Knobs, Done] | None = None
        self._is_at_work = False

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
            self._next = knobs, done
            is_at_work, self._is_at_work = self._is_at_work, True
        if not is_at_work:
            self._start()

    def _start(self) -> None:
        """Start the thread without the lock: it would wait for that, and then until the screens have drawn a frame."""
        try:
            threading.Thread(target=self._work, name="lunscope-knobs", daemon=True).start()
        except RuntimeError:  # no room for a thread: the next request tries again
            with self._lock:
                self._is_at_work = False
            raise

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

    def _work(self) -> None:
        while True:
            with self._lock:
                request, self._next = self._next, None
                if request is None:
                    self.state.ask(None)
                    self._is_at_work = False
                    return
            knobs, done = request
            error = self._error_of(knobs)
            if error:
                # What was requested meanwhile is a step from the knobs that were refused.
                with self._lock:
                    self._next = None
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
