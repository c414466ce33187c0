"""The driver of the screens: keys in, pictures out, and job control, none of which can block the event loop."""

from __future__ import annotations

import os
import re
import signal
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

from textual import constants, events
from textual.driver import Driver
from textual.geometry import Size

from tui.terminal.job_control import keep_threads_stoppable, stop_until_continued
from tui.terminal.keyboard import Keyboard
from tui.terminal.output import TerminalOutput
from tui.terminal.tty import open_terminal
from tui.terminal.use import TerminalUse

if TYPE_CHECKING:
    from textual.app import App


_MOUSE = (1000, 1003, 1015, 1006)
"""Buttons, moves, and two ways to report large coordinates."""
_ALTERNATE_SCREEN, _CURSOR, _FOCUS, _PASTE, _WRAP, _SYNCHRONIZED = 1049, 25, 1004, 2004, 7, 2026
_KITTY_KEYS = 1 | 8 | 16
"""Disambiguate, report all keys, with their text."""

WHERE_IS_THE_CURSOR = "\x1b[6n"
"""Every terminal that answers anything answers this, and in the order of the questions."""
ARE_YOU_THERE = "\x1b[5n"
"""Asked last: the answer is another than that to a question before, so what comes before it is over."""
SYNCHRONIZED_END = f"\x1b[?{_SYNCHRONIZED}l"


def _on(*modes: int) -> str:
    return "".join(f"\x1b[?{mode}h" for mode in modes)


def _off(*modes: int) -> str:
    return "".join(f"\x1b[?{mode}l" for mode in modes)


def enter(*, mouse: bool) -> str:
    """Take the alternate screen, ask for what is wanted of it, and what it can do."""
    # Apple's terminal prints the end of a question that it does not know.
    asks = "" if os.environ.get("TERM_PROGRAM") == "Apple_Terminal" else f"\x1b[?{_SYNCHRONIZED}$p"
    kitty = "" if constants.DISABLE_KITTY_KEY else f"\x1b[>{_KITTY_KEYS}u"
    modes = _on(_ALTERNATE_SCREEN) + (_on(*_MOUSE) if mouse else "") + _off(_CURSOR) + _on(_FOCUS, _PASTE)
    return modes + kitty + _off(_WRAP) + asks + WHERE_IS_THE_CURSOR


def leave(*, mouse: bool) -> str:
    """Give everything back; the keyboard before the screen, whose state it is."""
    kitty = "" if constants.DISABLE_KITTY_KEY else "\x1b[<u"
    quiet = SYNCHRONIZED_END + (_off(*_MOUSE) if mouse else "") + _off(_FOCUS, _PASTE)
    return f"{quiet}\x1b[0m{kitty}{_on(_WRAP)}{_off(_ALTERNATE_SCREEN)}{_on(_CURSOR)}"


RESIZE_S = 0.03
"""Sizes that come faster than this are taken together: only the last is laid out."""
FINISH_S = 0.3
"""What a slow terminal gets to take the sequences that give it back."""
ANSWER_S = 1.0
"""How long its answers are waited for, so that the shell does not read them."""
STARTING_S = 2.0
"""A terminal that has not answered after so long does not answer at all."""
_I_AM = re.compile(rb"\x1b\[[03]n")
_JOB_SIGNALS = (signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)


class TerminalDriver(Driver):
    """Drives a real terminal.

    Textual's own driver writes from a thread with a short queue: a terminal that reads slowly blocks the event loop in
    it, and one that went away blocks it for ever. Here everything happens in the event loop, on a descriptor that does
    not block. The app's attribute `terminal` (a TerminalUse) says which terminal; without it stdin's is opened.
    """

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._use: TerminalUse = getattr(app, "terminal", None) or _own_use(app)
        self._tty = self._use.tty
        self._size = size or self._tty.size
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
        """Whether Ctrl-Z means anything: it does."""
        return True

    # ----------------------------------------------------------------- output

    def write(self, data: str) -> None:
        """Send what is to be seen: as part of the frame being made, or by itself."""
        if self._frame is not None:
            self._frame.append(data)
        elif self._output is not None:
            self._output.control(data)

    @contextmanager
    def frame(self) -> Iterator[bool]:
        """Take what is written meanwhile as one update of the picture; yields whether it would be sent at all."""
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
        """Send the whole picture: updates were dropped, or somebody else wrote on the terminal."""
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
        self._output = TerminalOutput(self._tty.fd, self._loop, self._draw_all, self._lose)
        self._keyboard = Keyboard(self._tty.fd, self._loop, self.process_message, self._lose)
        self._take_signals()
        self._output.control(enter(mouse=self._mouse))
        self._send_size()

    def disable_input(self) -> None:
        """Read no more keys and follow no more sizes."""
        if self._keyboard is not None:
            self._keyboard.close()
        self._give_signals_back()

    def stop_application_mode(self) -> None:
        """Give the terminal back as it was, within a second whatever it does."""
        self.disable_input()
        output, self._output = self._output, None
        if output is None:
            return
        asks = self._awaits_answers
        text = leave(mouse=self._mouse) + (ARE_YOU_THERE if asks else "")
        if output.finish(text, FINISH_S) and asks:
            self._tty.drop_input_until(_I_AM, ANSWER_S)
        self._tty.restore()

    @property
    def _awaits_answers(self) -> bool:
        """Whether answers or mouse moves may still be on their way, which would be typed into the shell."""
        keyboard = self._keyboard
        if self._is_lost or keyboard is None or self._tty.is_hung_up:
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
        for number in _JOB_SIGNALS:
            self._handlers.setdefault(number, signal.signal(number, self._on_signal))

    def _give_signals_back(self) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers.clear()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        """Leave the work to the event loop: a handler may run in the middle of anything."""
        work = {signal.SIGWINCH: self._note_resize, signal.SIGTSTP: self._suspend, signal.SIGCONT: self._continued}
        self._loop.call_soon_threadsafe(work[signal.Signals(number)])

    def _note_resize(self) -> None:
        if not self._resizing:
            self._resizing = True
            self._loop.call_later(RESIZE_S, self._send_size)

    def _send_size(self) -> None:
        self._resizing = False
        self._size = self._tty.size
        size = Size(*self._size)
        self.send_message(events.Resize(size, size))

    # ------------------------------------------------------------ job control

    def suspend(self) -> None:
        """Stop the process group, as Ctrl-Z does where the terminal handles it; returns when it continued."""
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
        """Take the terminal again after a stop that nobody asked us about: the shell has had it meanwhile."""
        if self._output is None:
            return
        try:
            self._tty.make_raw()
        except termios.error as error:
            self._lose(f"the terminal cannot be set up: {error.args[-1]}")
            return
        self._output.control(leave(mouse=self._mouse) + enter(mouse=self._mouse))
        self._use.after_stop(None)
        self._draw_all()

    def suspend_application_mode(self) -> None:
        """Give the terminal to another program for a while."""
        self.stop_application_mode()


def _own_use(app: App[Any]) -> TerminalUse:
    def lose(reason: str) -> None:
        app.exit(return_code=128 + signal.SIGHUP, message=reason)

    return TerminalUse(open_terminal(), lose, lambda: False)
