"""Sampling in a thread during a headless load."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from collectors.model import Source, Step
from collectors.sampling.schedule import SampleFlag
from tui.options.reading import longest_first_sample_s

READING_S = 2.0
"""How long the reading of a sample may take on a busy machine."""


class Monitor:
    """Reads steps from a source until stopped and keeps the last one; owns the source.

    `observe` is called with every step, in the thread that samples.
    """

    def __init__(
        self,
        source: Source,
        observe: Callable[[Step], None] = lambda _step: None,
        *,
        first_sample_s: float = longest_first_sample_s("auto"),
    ) -> None:
        self._source = source
        self.first_sample_s = first_sample_s
        """How long the first sample may take."""
        self._observe = observe
        self._stop = SampleFlag()
        self._changed = threading.Condition()
        self._step: Step | None = None
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
        """Wait for a sample whose reading begins from now on, or the end of sampling.

        One that is being read may have taken the counters and events of the load already.
        """
        self._wait_for_sample(time.monotonic_ns(), timeout_s)

    def sample_now(self, timeout_s: float) -> None:
        """Request a sample ahead of schedule and wait for it, or the end of sampling."""
        asked_ns = time.monotonic_ns()
        self.request_sample()
        self._wait_for_sample(asked_ns, timeout_s)

    def request_sample(self) -> None:
        """Request a sample ahead of schedule; never blocks."""
        self._stop.request()

    def _wait_for_sample(self, since_ns: int, timeout_s: float) -> None:
        def has_come() -> bool:
            return self._step is not None and self._step.current.monotonic_ns >= since_ns

        with self._changed:
            self._changed.wait_for(lambda: has_come() or self._failure is not None, timeout_s)

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
                    self._changed.notify_all()
        except Exception as error:  # nothing catches it in a thread; the command checks
            with self._changed:
                self._failure = error
                self._changed.notify_all()
