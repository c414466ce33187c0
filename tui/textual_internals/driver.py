"""The terminal driver: input, output and job control, none of which blocks the event loop."""

from __future__ import annotations

import re
import signal
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from textual import events
from textual.driver import Driver
from textual.geometry import Size
from textual.message import Message

from tui.terminal.abilities import abilities_of
from tui.terminal.job_control import keep_threads_stoppable, stop_until_continued
from tui.terminal.modes import ARE_YOU_THERE, CLEAR, OPERATING_SYSTEM_COMMAND, enter, leave
from tui.terminal.output import TerminalOutput
from tui.terminal.tty import TerminalUse, open_terminal
from tui.textual_internals.cells import ScreenCells
from tui.textual_internals.keyboard import Keyboard

if TYPE_CHECKING:
    from textual.app import App


RESIZE_S = 0.03
"""Resizes within this time are merged: only the last is laid out."""
FINISH_S = 0.3
"""Time for a slow terminal to read the restoring sequences."""
ANSWER_S = 1.0
"""How long to wait for its replies, so that the shell does not read them."""
STARTING_S = 2.0
"""A terminal that has not replied after this time never does."""
_I_AM = re.compile(rb"\x1b\[[03]n")
_JOB_SIGNALS = (signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)


class TerminalDriver(Driver):
    """Drives a real terminal.

    Textual's own driver writes from a thread with a short queue: a slow terminal blocks the event loop, and a lost one
    blocks it for ever. This driver runs in the event loop, on a non-blocking descriptor. The app's attribute `terminal`
    (a TerminalUse) names the terminal; without it the one of stdin is opened.
    """

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._use: TerminalUse = getattr(app, "terminal", None) or _own_use(app)
        self._tty = self._use.tty
        self._size = size or self._tty.size
        self._abilities = abilities_of()
        self._mouse = mouse and self._abilities.mouse
        width, height = self._size
        self.cells = ScreenCells(width, height, self._abilities)
        """What the terminal shows."""
        self._output: TerminalOutput | None = None
        self._keyboard: Keyboard | None = None
        self._frame: list[str] | None = None
        self._resizing = False
        self._is_lost = False
        self._started_s = 0.0
        self._handlers: dict[int, Any] = {}
        keep_threads_stoppable()

    @property
    def can_suspend(self) -> bool:
        """Whether Ctrl-Z is supported."""
        return True

    # ----------------------------------------------------------------- output

    def write(self, data: str) -> None:
        """Send output: as part of the current frame, or immediately; the title and the like only where it is known."""
        if data.startswith(OPERATING_SYSTEM_COMMAND) and not self._abilities.extensions:
            return
        if self._frame is not None:
            self._frame.append(data)
        elif self._output is not None:
            self._output.control(data)

    def send_message(self, message: Message) -> None:
        """Give a message to the app: input is read in its event loop, so that no other thread has to be waited for."""
        self._app.post_message(message)

    @contextmanager
    def frame(self) -> Iterator[bool]:
        """Collect all writes into one frame; yields whether it would be sent."""
        output = self._output
        if output is None:
            yield False
            return
        if output.is_behind:
            output.drop_frame()
            yield False
            return
        self._frame = []
        try:
            yield True
        finally:
            text, self._frame = "".join(self._frame), None
            output.frame(text)

    def _draw_all(self) -> None:
        """Redraw the whole screen: frames were dropped, or another program wrote to the terminal."""
        if self._app._running and self._app._screen_stack:
            self._app.screen.refresh()

    # ------------------------------------------------------- start and finish

    def start_application_mode(self) -> None:
        """Take the terminal."""
        self._started_s = time.monotonic()
        try:
            self._tty.make_raw()
        except termios.error as error:
            self._lose(f"the terminal cannot be set up: {error.args[-1]}")
            return
        self.cells.forget()
        self._output = TerminalOutput(self._tty.fd, self._loop, self._draw_all, self._lose)
        self._keyboard = Keyboard(self._tty.fd, self._loop, self.process_message, self._lose)
        self._take_signals()
        self._output.control(self._enter())
        self._send_size()

    def _enter(self) -> str:
        return enter(mouse=self._mouse, abilities=self._abilities)

    def _leave(self, clear: str = CLEAR) -> str:
        return leave(mouse=self._mouse, abilities=self._abilities, clear=clear)

    def disable_input(self) -> None:
        """Read no more keys and follow no more sizes."""
        if self._keyboard is not None:
            self._keyboard.close()
        self._give_signals_back()

    def stop_application_mode(self) -> None:
        """Restore the terminal, within a second in any case."""
        self.disable_input()
        output, self._output = self._output, None
        if output is None:
            return
        asks = self._awaits_answers
        text = self._leave() + (ARE_YOU_THERE if asks else "")
        if output.finish(text, FINISH_S) and asks:
            self._tty.drop_input_until(_I_AM, ANSWER_S)
        self._tty.restore()

    @property
    def _awaits_answers(self) -> bool:
        """Whether replies or mouse reports may still arrive, which the shell would read as input."""
        keyboard = self._keyboard
        if self._is_lost or keyboard is None or self._tty.is_hung_up or not self._abilities.answers:
            return False
        return keyboard.answers or time.monotonic() - self._started_s < STARTING_S

    def _lose(self, reason: str) -> None:
        if self._is_lost:
            return
        self._is_lost = True
        self.disable_input()
        self._use.lose(reason)

    # ---------------------------------------------------------------- signals

    def _take_signals(self) -> None:
        # `perf record lunscope` starts it with the signal of resizes blocked.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGWINCH})
        for number in _JOB_SIGNALS:
            self._handlers.setdefault(number, signal.signal(number, self._on_signal))

    def _give_signals_back(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers.clear()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        """Defer to the event loop: a signal handler may run at any point."""
        work = {signal.SIGWINCH: self._note_resize, signal.SIGTSTP: self._suspend, signal.SIGCONT: self._continued}
        self._loop.call_soon_threadsafe(work[signal.Signals(number)])

    def _note_resize(self) -> None:
        if not self._resizing:
            self._resizing = True
            self._loop.call_later(RESIZE_S, self._send_size)

    def _send_size(self) -> None:
        self._resizing = False
        self._size = self._tty.size
        self.cells.resize(*self._size)
        size = Size(*self._size)
        self.send_message(events.Resize(size, size))

    # ------------------------------------------------------------ job control

    def suspend(self) -> None:
        """Stop the process group, as the terminal does on Ctrl-Z; returns after SIGCONT."""
        self._suspend(group=True)

    def _suspend(self, *, group: bool = False) -> None:
        if self._output is None:
            return
        self._use.before_stop()
        stopped_s = time.monotonic()
        self.stop_application_mode()
        stop_until_continued(self._tty, group=group, is_ending=self._use.is_ending)
        self._use.after_stop(time.monotonic() - stopped_s)
        if not self._use.is_ending():
            self.start_application_mode()
            self._draw_all()

    def _continued(self) -> None:
        """Set up the terminal again after SIGSTOP: the shell used it meanwhile."""
        if self._output is None:
            return
        try:
            self._tty.make_raw()
        except termios.error as error:
            self._lose(f"the terminal cannot be set up: {error.args[-1]}")
            return
        # What the shell has written meanwhile may be on either screen: it stays.
        self._output.control(self._leave(clear="") + self._enter())
        self._use.after_stop(None)
        self.cells.forget()
        self._draw_all()

    def suspend_application_mode(self) -> None:
        """Lend the terminal to another program."""
        self.stop_application_mode()


def _own_use(app: App[Any]) -> TerminalUse:
    def lose(reason: str) -> None:
        app.exit(return_code=128 + signal.SIGHUP, message=reason)

    return TerminalUse(open_terminal(), lose, lambda: False)
