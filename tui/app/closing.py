"""The end of the screens: the load, the tunables, the recording and the source are closed in every case."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.background_call import BackgroundCall
from engine.running.status import LoadState
from tui.headless.signals import EndingSignals
from tui.headless.wait_lines import WaitLines
from tui.process.standard_streams import say

if TYPE_CHECKING:
    from collectors.model import Source
    from engine.running.control import LoadControl
    from engine.tune.held import HeldChanges
    from tui.app_input import Recording

HASTY_S = 0.4
"""Longest wait for outstanding I/Os, and then for the end of the load, after the terminal was lost."""
_POLL_S = 0.05
_UNDER_WAY = frozenset({LoadState.RUNNING, LoadState.STOPPING})


class Closing:
    """Close the load, then the source and its recording, each even if another fails."""

    def __init__(
        self,
        control: LoadControl | None,
        source: Source,
        recording: Recording | None,
        before_close: Callable[[], None] | None,
    ) -> None:
        self._control = control
        self._recording = recording
        self._before_close = before_close
        self._steps: tuple[Callable[[], None], ...] = (
            self._end_load,
            self._restore,
            self._record_the_end,
            source.close,
        )
        self._is_done = False
        self.changes: Callable[[], HeldChanges | None] = lambda: None
        """Changes of tunables that the screens hold."""
        self.restored: list[str] = []
        """A line for each change that was in force, safe to print."""
        self.code = 0
        """Exit code of the signal that gave up a load that did not end; 0 if none did."""

    @property
    def urgent_steps(self) -> tuple[Callable[[], None], ...]:
        """The same within a short limit: the recording is completed without waiting for its source."""
        finish = () if self._recording is None else (self._recording.finish,)
        return (self._stop_load_hastily, self._await_load, self._record_the_end, *finish)

    def close(self) -> None:
        """Close all parts once; raises the first error."""
        if self._is_done:
            return
        self._is_done = True
        failures = []
        for close in self._steps:
            try:
                close()
            except Exception as error:
                failures.append(error)
        if failures:
            raise failures[0]

    def _end_load(self) -> None:
        """Stop the load, if there is one, and report on stderr what is outstanding; in the main thread."""
        if self._control is not None:
            self.code = end_load(self._control)
        if self._before_close is not None:
            self._before_close()

    def _restore(self) -> None:
        """Restore the tunables that are not kept; without an answer of the kernel in time the watchdogs do."""
        held = self.changes()
        if held is None:
            return
        from tui.screens.tune.leaving_changes import restore_all  # noqa: PLC0415 (few change any)

        self.restored = restore_all(held, self._recording)

    def _stop_load_hastily(self) -> None:
        if self._control is not None:
            self._control.stop(verify=False, give_up_s=HASTY_S)

    def _await_load(self) -> None:
        """Give a load that is being stopped a moment more, so that its end is recorded; say so if it takes longer."""
        control = self._control
        if control is not None and control.status.state in _UNDER_WAY and not control.wait(HASTY_S):
            control.note_load("the load had not ended when the recording was", {})

    def _record_the_end(self) -> None:
        """Record the end of the load and its reason, which come after the last sample."""
        if self._recording is not None and self._control is not None:
            for event in self._control.recent_events:
                self._recording.add_event(event)


def end_load(control: LoadControl) -> int:
    """Stop the load, report outstanding I/Os, and give them up at a signal; in the main thread.

    Returns:
        128 + the number of the signal that gave it up; 0 if none came.
    """
    lines = WaitLines(lambda line: say(f"{line} (Ctrl-C gives up)"))
    with EndingSignals() as signals:
        stopping = BackgroundCall(control.close, "lunscope-stop")
        while not stopping.done.wait(_POLL_S):
            lines.show(control.status.outstanding)
            if signals.count:
                control.abandon()
        signal = signals.wait(0)
    stopping.result()
    return 0 if signal is None else 128 + signal
