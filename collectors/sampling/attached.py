"""Programs in the kernel that a collector attaches in a thread of its own once they are wanted."""

from __future__ import annotations

import threading
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
        self._lock = threading.Lock()
        self._closed = False
        self._lost = threading.Event()
        self.program: Program | None = None
        """What is attached now."""
        self.refusal = ""
        """Why nothing is attached, in one line; empty while something is, and before it was started."""

    def start(self) -> None:
        """Attach in the background; once."""
        if self._thread is None:
            self._thread = BackgroundThread(self._name, self._run)

    def close(self) -> None:
        """Detach; may be called twice."""
        with self._lock:
            self._closed = True
            program, self.program = self.program, None
        if self._thread is not None:
            self._thread.stop_flag.set()
            self._lost.set()
            self._thread.stop()
        if program is not None:
            program.close()

    def lose(self, program: Program, reason: str) -> None:
        """Drop programs that have failed; others are attached soon, which count from zero."""
        with self._lock:
            self.program, self.refusal = None, reason
        program.close()
        self._lost.set()

    def _run(self, stop: threading.Event) -> None:
        pause_s = self._first_pause_s
        while not stop.is_set():
            if self._attach():
                pause_s = self._first_pause_s
                self._lost.wait()
                self._lost.clear()
            stop.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _attach(self) -> bool:
        """Attach; return whether that worked and they are wanted still."""
        try:
            program = self._open()
        except (OSError, LunscopeError) as error:
            self.refusal = words_of(error)
            return False
        with self._lock:
            if not self._closed:
                self.program, self.refusal = program, ""
                return True
        program.close()
        return False
