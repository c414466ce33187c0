"""What a stop of the whole process (Ctrl-Z) means for a load, and where it is written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.running.control import LoadControl


class Stops:
    """Keeps the I/Os that a stop of the process delays out of the statistics, and notes the stop as an event."""

    def __init__(self, control: LoadControl | None) -> None:
        self._control = control

    def before(self) -> None:
        """Close the epoch: I/Os that are outstanding now would be measured with the whole stop."""
        if self._control is not None:
            self._control.part_epoch()

    def after(self, seconds: float | None) -> None:
        """Note how long the stop was; without `seconds` nobody knows, and what was outstanding is in the epoch."""
        if self._control is None:
            return
        self._control.part_epoch()
        self._control.note_stop(seconds)
