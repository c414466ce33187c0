"""Samples of the host beside a load: from right before its start to its end."""

from __future__ import annotations

import time

from collectors.reports.run_devices import RunSamples
from tui.headless.monitor import Monitor
from tui.options.reading import PATIENCE_S

_FIRST_SAMPLE_S = PATIENCE_S + 1.0
"""How long the first sample may hold up a load: it waits for exact counters."""
_SAMPLE_S = 1.0
"""How long a sample may hold up its start or end."""


class HostSamples:
    """Begins and ends the samples of a run with one of their own; does nothing where none are wanted."""

    def __init__(self, monitor: Monitor, samples: RunSamples | None) -> None:
        self._monitor = monitor
        self._samples = samples

    def await_counters(self) -> None:
        """Wait for the first sample before the targets are opened, so that the load begins right after their checks."""
        if self._samples is not None and self._monitor.step is None:
            self._monitor.wait_for_next(_FIRST_SAMPLE_S)

    def begin(self) -> None:
        """Begin; takes the first sample."""
        if self._samples is not None:
            self._samples.begin(time.monotonic_ns())
            self._monitor.sample_now(_SAMPLE_S)

    def end(self) -> None:
        """Take the last sample, before what was written is read back."""
        if self._samples is not None:
            self._monitor.sample_now(_SAMPLE_S)
            self._samples.end()
