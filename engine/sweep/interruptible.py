"""What may be asked of a measurement of many points while it goes on."""

from __future__ import annotations

import threading


class Interruptible:
    """Requests to what measures in another thread, which looks at them between and within its points."""

    def __init__(self) -> None:
        self._stop, self._go_on = threading.Event(), threading.Event()
        self._go_on.set()

    def stop(self) -> None:
        """End it; what was measured stays."""
        self._stop.set()
        self._go_on.set()

    def pause(self) -> None:
        """Measure nothing after what is in hand until `resume`; the load goes on."""
        self._go_on.clear()

    def resume(self) -> None:
        """Go on after a pause."""
        self._go_on.set()

    @property
    def is_paused(self) -> bool:
        """Whether it pauses, or does once what is in hand is measured."""
        return not self._go_on.is_set()


class SkippingPoints(Interruptible):
    """The same where the point in hand can be left out."""

    def __init__(self) -> None:
        super().__init__()
        self._skip = threading.Event()

    def skip(self) -> None:
        """Leave out the point in hand."""
        self._skip.set()
