"""Programs in the kernel that a collector attaches in a thread of its own once they are wanted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from collectors.sampling.reading import BackgroundThread
from engine.errors import LunscopeError, words_of

FIRST_PAUSE_S = 5.0
LONGEST_PAUSE_S = 300.0
"""Pause before attaching is tried again, since a probe helper may be started later; it doubles with each failure."""


class Closeable(Protocol):
    """What detaches."""

    def close(self) -> None:
        """Detach; may be called twice."""


Program = TypeVar("Program", bound=Closeable)


class AttachedProgram(Generic[Program]):
    """Attaches once started, again after a pause where that fails, and again once the programs are gone."""

    def __init__(self, name: str, open_program: Callable[[], Program], first_pause_s: float = FIRST_PAUSE_S) -> None:
        """Nothing is attached yet.

        Args:
            name: of the thread.
            open_program: attaches; raises OSError or LunscopeError.
            first_pause_s: pause after the first failure.
        """
        self._name = name
        self._open = open_program
        self._first_pause_s = first_pause_s
        self._thread: BackgroundThread | None = None
        self._changed = threading.Condition()
        self._attempts = 0
        self._closed = self._rests = False
        self.program: Program | None = None
        """What is attached now."""
        self.refusal = ""
        """Why nothing is attached, in one line; empty while something is, and before the first attempt ends."""

    def start(self) -> None:
        """Attach in the background; once."""
        if self._thread is None:
            self._thread = BackgroundThread(self._name, self._run)

    def wait(self, timeout_s: float) -> bool:
        """Wait until the first attempt ends; return whether something is attached."""
        with self._changed:
            self._changed.wait_for(lambda: self._attempts > 0, timeout_s)
            return self.program is not None

    def close(self) -> None:
        """Detach; may be called twice."""
        with self._changed:
            self._closed = True
            program, self.program = self.program, None
            if self._thread is not None:
                self._thread.stop_flag.set()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.stop()
        if program is not None:
            program.close()

    def lose(self, reason: str) -> None:
        """Drop programs that have failed; others are attached soon, which count from zero."""
        with self._changed:
            program, self.program = self.program, None
            self._refuse(reason)
            self._changed.notify_all()
        if program is not None:
            program.close()

    @property
    def rests(self) -> bool:
        """Whether nothing is attached because nothing is wanted for now."""
        return self._rests

    def rest(self, reason: str) -> None:
        """Detach, and attach no more until `resume`."""
        with self._changed:
            self._rests = True
        self.lose(reason)

    def resume(self) -> None:
        """Attach again."""
        with self._changed:
            self._rests = False
            self._changed.notify_all()

    def _run(self, stop: threading.Event) -> None:
        pause_s = self._first_pause_s
        while not stop.is_set():
            with self._changed:
                self._changed.wait_for(lambda: not self._rests or stop.is_set())
            if stop.is_set():
                return
            if self._attempt():
                pause_s = self._first_pause_s
                with self._changed:
                    self._changed.wait_for(lambda: self.program is None or stop.is_set())
                if self._rests:
                    continue
            if stop.wait(pause_s):
                return
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _attempt(self) -> bool:
        """Attach; return whether that worked, wanted or not."""
        started_s = time.monotonic()
        try:
            program = self._open()
        except (OSError, LunscopeError) as error:
            with self._changed:
                self._attempts += 1
                self._refuse(words_of(error))
                self._changed.notify_all()
            return False
        took_s = time.monotonic() - started_s
        with self._changed:
            self._attempts += 1
            if not self._closed and not self._rests:
                self.program = program
                self._begin(took_s)
            self._changed.notify_all()
        if self.program is not program:
            program.close()
        return True

    def _begin(self, _took_s: float) -> None:
        """Note that something is attached, which took a time; called with the lock held."""
        self.refusal = ""

    def _refuse(self, reason: str) -> None:
        """Note why nothing is attached; called with the lock held."""
        self.refusal = reason
