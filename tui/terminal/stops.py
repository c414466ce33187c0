"""Effect of a stop of the process (Ctrl-Z) on a load, and its event."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.running.control import LoadControl


class Stops:
    """Excludes I/Os delayed by a stop of the process from the statistics, and records the stop as an event."""

    def __init__(self, control: LoadControl | None) -> None:
        self._control = control

    def before(self) -> None:
        """Close the epoch: I/Os that are outstanding now would be measured with the whole stop."""
        if self._control is not None:
            self._control.part_epoch()

    def after(self, seconds: float | None) -> None:
        """Record the length of the stop; None after SIGSTOP, when the epoch includes the outstanding I/Os."""
        if self._control is None:
            return
        self._control.part_epoch()
        self._control.note_stop(seconds)
