"""Sampling in a thread during a headless load."""

from __future__ import annotations

import threading
from collections.abc import Callable

from collectors.model import Source, Step


class Monitor:
    """Reads steps from a source until stopped and keeps the last one; owns the source.

    `observe` is called with every step, in the thread that samples.
    """

    def __init__(self, source: Source, observe: Callable[[Step], None] = lambda _step: None) -> None:
        self._source = source
        self._observe = observe
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._step: Step | None = None
        self._count = 0
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="lunscope-monitor", daemon=True)

    @property
    def step(self) -> Step | None:
        """The last step; None before the first."""
        return self._step

    @property
    def failure(self) -> Exception | None:
        """The error that ended sampling early."""
        return self._failure

    def start(self) -> None:
        """Start sampling."""
        self._thread.start()

    def wait_for_next(self, timeout_s: float) -> None:
        """Wait for one more sample, or the end of sampling."""
        with self._changed:
            count = self._count
            self._changed.wait_for(lambda: self._count > count or self._failure is not None, timeout_s)

    def close(self) -> None:
        """Stop sampling and close the source."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._source.close()

    def _run(self) -> None:
        try:
            for step in self._source.steps(self._stop):
                self._observe(step)
                with self._changed:
                    self._step = step
                    self._count += 1
                    self._changed.notify_all()
        except Exception as error:  # nothing catches it in a thread; the command checks
            with self._changed:
                self._failure = error
                self._changed.notify_all()
